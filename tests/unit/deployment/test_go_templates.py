"""Our reading of Go's templates against what Go's own documentation says of them."""

from typing import Any

import pytest

from tests.unit.deployment.go_templates import Renderer, TemplateError

CHART = {"name": "shop", "version": "1.2.3", "appVersion": "9"}
VALUES: dict[str, Any] = {
    "on": True, "off": False, "none": {}, "text": "a b", "count": 3, "map": {"b": "1", "a": "true"}
}  # fmt: skip


def rendered(source: str) -> str:
    return Renderer(VALUES, CHART, "eve").render(source)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("a {{ .Values.count }} b", "a 3 b"),
        ("a {{- .Values.count }} b", "a3 b"),
        ("a\n  {{- .Values.count -}}\n b", "a3b"),
        ("{{ .Release.Name }}-{{ .Chart.AppVersion | quote }}", 'eve-"9"'),
        ('{{ printf "%s:%s" .Chart.Name (.Chart.Version | default "0") }}', "shop:1.2.3"),
        ('{{ .Values.none | default "x" }}', "x"),
        ("{{ if .Values.on }}yes{{ else }}no{{ end }}", "yes"),
        ("{{ if .Values.none }}yes{{ else }}no{{ end }}", "no"),
        ("{{ if not .Values.off }}yes{{ end }}", "yes"),
        ("{{ with .Values.map }}{{ .b }}{{ end }}", "1"),
        ("{{ with .Values.none }}{{ .b }}{{ end }}", ""),
        ("x:\n  {{- toYaml .Values.map | nindent 2 }}", "x:\n  a: 'true'\n  b: '1'"),
        ("{{ add (int .Values.map.b) 41 }}", "42"),
        ("{{ .Values.on }}", "true"),
        (
            "{{ .Values.text | sha256sum }}",
            "c8687a08aa5d6ed2044328fa6a697ab8e96dc34291e8c2034ae8c38e6fcc6d65",
        ),
    ],
)
def test_a_template(source: str, text: str) -> None:
    assert rendered(source) == text


@pytest.mark.parametrize(
    "source",
    [
        "{{ .Values.nothing }}",
        "{{ .Values.text.nothing }}",
        "{{ lookup .Values.text }}",
        "{{ range .Values.map }}{{ end }}",
        "{{ if .Values.on }}",
        "{{ .Values.text",
        "{{ .Values.map }}",
        "{{ end }}",
    ],
)
def test_what_it_does_not_know_is_refused(source: str) -> None:
    if source.endswith("}}"):
        with pytest.raises(TemplateError):
            rendered(source)
    else:
        # Go refuses an open action; here it stays as it is, and no YAML begins so
        assert rendered(source) == source


def test_a_definition_is_rendered_where_it_is_included() -> None:
    renderer = Renderer(VALUES, CHART, "eve")
    renderer.define('{{- define "two" -}}\na: {{ .text }}\nb: 2\n{{- end }}\n')
    assert renderer.render('x:\n  {{- include "two" .Values | nindent 2 }}\n') == (
        "x:\n  a: a b\n  b: 2\n"
    )
