"""``X-Product-Name`` (spec rest-api 5.3)."""

import re

from quart import Request

from fetcher.api.routing import Parameter
from fetcher.domain.errors import FetcherError

HEADER = "X-Product-Name"
MAX_CHARACTERS = 100
_NAME = re.compile(r"[a-z0-9_-]+", re.ASCII)


def product_parameter(description: str, *, required: bool = False) -> Parameter:
    """As the API document has it; blanks around the name, and upper case, are taken too."""
    shortest = 1 if required else 0
    return Parameter(
        name=HEADER,
        place="header",
        description=description,
        required=required,
        schema={"type": "string", "pattern": f"^[A-Za-z0-9_-]{{{shortest},{MAX_CHARACTERS}}}$"},
        example="acme-reports",
    )


def required_product(request: Request) -> str:
    """The product's name in lower case. Raise ``FET-0403``."""
    name = optional_product(request)
    if name is None:
        raise _invalid("is required")
    return name


def optional_product(request: Request) -> str | None:
    """None where the header is missing or empty. Raise ``FET-0403``."""
    sent = request.headers.get(HEADER, "")
    if not sent:
        return None
    name = sent.strip().lower()
    if len(name) > MAX_CHARACTERS:
        raise _invalid(f"must have at most {MAX_CHARACTERS} characters")
    if not _NAME.fullmatch(name):
        raise _invalid("needs letters, digits, '-' and '_' only")
    return name


def _invalid(problem: str) -> FetcherError:
    return FetcherError("FET-0403", "Invalid header", f"{HEADER} {problem}")
