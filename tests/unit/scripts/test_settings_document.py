"""docs/settings.md and config/*.env.example are what the settings say."""

from typing import Annotated

import pytest
from pydantic import BaseModel, Field

from fetcher.settings import Role, Settings
from fetcher.settings.fields import MANAGER, Boolean, NoEffect, Unset, positive_or_default
from fetcher.settings.model import GROUPS
from scripts.settings_document.described import described
from scripts.settings_document.files import ROOT, written


class Sample(BaseModel):
    switch: Annotated[Boolean | None, Field(description="Turns it."), Unset("`on`")] = None
    seconds: Annotated[float, Field(gt=0, le=9, description="How long."), MANAGER] = 30.0
    count: Annotated[int, positive_or_default(5), Field(description="So many.")] = 5
    idle: Annotated[str, Field(description="Nothing."), NoEffect()] = "lz4"
    bare: int = 1


@pytest.mark.parametrize("path", written(), ids=lambda path: path.name)
def test_documents_of_settings_are_up_to_date(path: object) -> None:
    told = {file: text for file, text in written().items() if file == path}
    for file, text in told.items():
        is_same = file.exists() and file.read_text("utf-8") == text
        assert is_same, f"{file.relative_to(ROOT)} differs from fetcher/settings: run `make docs`"


def test_every_setting_belongs_to_one_group_and_keeps_its_order() -> None:
    names = [name for group in GROUPS for name in group.model_fields]
    assert names == list(Settings.model_fields)


def test_every_setting_says_what_it_does() -> None:
    bare = [
        name
        for name, field in Settings.model_fields.items()
        if not field.description and name != "datasource_groups"
    ]
    assert bare == [], "give these a Field(description=…) and run `make docs`"


def test_what_a_document_shows_of_a_setting() -> None:
    fields = Sample.model_fields
    switch = described("switch", fields["switch"])
    assert (switch.name, switch.type_name, switch.default) == ("SWITCH", "boolean", "`on`")
    assert (switch.role, switch.plain_default, switch.example) == (Role.ALL, "", None)
    seconds = described("seconds", fields["seconds"])
    assert (seconds.type_name, seconds.allowed) == ("number", "above 0, at most 9")
    assert (seconds.default, seconds.role) == ("30", Role.MANAGER)
    assert [seconds.is_read_by(role) for role in (Role.MANAGER, Role.WORKER, Role.ALL)] == [
        True,
        False,
        True,
    ]
    assert described("count", fields["count"]).default == "5"
    idle = described("idle", fields["idle"])
    assert (idle.default, idle.has_effect) == ("`lz4`", False)
    with pytest.raises(ValueError, match="bare: Field"):
        described("bare", fields["bare"])
