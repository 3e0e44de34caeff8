"""A rule by patterns, and a CODEOWNERS file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib.auth.models import User

from codegen_app.tracking.models import PatternRule, PatternSet
from codegen_app.tracking.pages.thresholds.form import DurationField
from codegen_app.tracking.queries.alert_rows import triagers
from codegen_app.tracking.rules.book import MAX_RULES, RuleDraft
from scheduler.errors import UserError
from scheduler.track.patterns import FACT_NAMES, SeriesPatterns, parse_patterns

THRESHOLDS, OWNER, BOTH = "thresholds", "owner", "both"
MAX_FILE_CHARACTERS = 200_000
_TITLES = {
    "repository": ("Repository", "*/kernels"),
    "problem": ("Problem", "gemm*"),
    "device": ("Device", "*H200*"),
    "metric": ("Metric", "time"),
    "path": ("Path of the source, as in CODEOWNERS", "/kernels/attention/"),
}


class PatternsField(forms.CharField):
    """Patterns of one fact, one a line."""

    def __init__(self, name: str) -> None:
        title, example = _TITLES[name]
        super().__init__(
            label=title,
            required=False,
            max_length=20_000,
            widget=forms.Textarea(attrs={"rows": 2, "placeholder": example, "spellcheck": "false"}),
            error_messages={"max_length": "At most %(limit_value)d characters."},
        )
        self._name = name

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        try:
            parse_patterns({self._name: text})
        except UserError as error:
            raise forms.ValidationError(f"{str(error)[:1].upper()}{str(error)[1:]}.") from None
        return text


class PatternsForm(forms.Form):
    """The patterns that select series."""

    repository = PatternsField("repository")
    problem = PatternsField("problem")
    device = PatternsField("device")
    metric = PatternsField("metric")
    path = PatternsField("path")

    def patterns(self) -> SeriesPatterns:
        return parse_patterns(self.cleaned_data)

    @property
    def pattern_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in FACT_NAMES]


def pattern_texts(row: PatternSet) -> dict[str, str]:
    """Return the initial values of ``PatternsForm``."""
    return {name: "\n".join(getattr(row, name)) for name in FACT_NAMES}


class RuleForm(PatternsForm):
    """The patterns, settings and place of a rule."""

    decides = forms.ChoiceField(
        label="Decides",
        choices=[
            (THRESHOLDS, "thresholds"),
            (OWNER, "the owner"),
            (BOTH, "thresholds and the owner"),
        ],
        error_messages={
            "required": "Select what the rule decides.",
            "invalid_choice": "%(value)s is not something that a rule decides.",
        },
    )
    least_effect = forms.FloatField(
        label="Minimum effect, % of the level",
        required=False,
        min_value=0.1,
        max_value=100,
        widget=forms.TextInput(attrs={"inputmode": "decimal", "placeholder": "default"}),
        error_messages={
            "invalid": "Enter a percentage such as 2, or leave empty for the default.",
            "min_value": "Must be at least 0.1%%.",
            "max_value": "Must be at most 100%%.",
        },
    )
    stale_after = DurationField(
        label="Missing data after",
        required=False,
        widget=forms.TextInput(attrs={"placeholder": "automatic, or 36h, 7d, 2w"}),
    )
    muted = forms.BooleanField(label="Muted: detect changes, raise no alerts", required=False)
    owner = forms.ChoiceField(
        label="Owner",
        required=False,
        error_messages={"invalid_choice": "%(value)s has no account that may triage alerts."},
    )
    position = forms.IntegerField(
        label="Position in the list",
        required=False,
        min_value=1,
        max_value=MAX_RULES,
        widget=forms.TextInput(attrs={"inputmode": "numeric", "placeholder": "at the end"}),
        error_messages={
            "invalid": "Enter a number from 1 on, or leave empty for the end.",
            "min_value": "Enter a number from 1 on, or leave empty for the end.",
            "max_value": "Must be at most %(limit_value)d.",
        },
    )

    def __init__(self, data: Mapping[str, str] | None = None, **options: Any) -> None:
        super().__init__(data, **options)
        people = [(name, name) for name, able in triagers().values() if able]
        self.fields["owner"].choices = [("", "no owner"), *people]  # type: ignore[attr-defined]

    @classmethod
    def from_rule(cls, rule: PatternRule) -> RuleForm:
        """Return a form filled with a rule."""
        decides = BOTH if rule.sets_owner else THRESHOLDS
        effect = rule.least_effect
        return cls(
            initial={
                **pattern_texts(rule),
                "decides": decides if rule.sets_thresholds else OWNER,
                "least_effect": None if effect is None else float(f"{effect * 100:.6g}"),
                "stale_after": rule.stale_after,
                "muted": rule.muted,
                "owner": rule.owner.get_username() if rule.owner else "",
                "position": rule.position,
            }
        )

    def draft(self, replaces: PatternRule | None) -> RuleDraft:
        """Return the rule as it would be saved (1 query for the owner)."""
        values = self.cleaned_data
        effect, owner = values["least_effect"], values["owner"]
        return RuleDraft(
            patterns=self.patterns(),
            sets_thresholds=values["decides"] in (THRESHOLDS, BOTH),
            least_effect=None if effect is None else effect / 100,
            muted=values["muted"],
            stale_after=values["stale_after"],
            sets_owner=values["decides"] in (OWNER, BOTH),
            owner=User.objects.get(username=owner) if owner else None,
            position=values["position"],
            replaces=replaces,
        )


class OwnersForm(forms.Form):
    """A CODEOWNERS file, pasted or uploaded, and the name of its import."""

    name = forms.CharField(
        label="Name of the import; importing under it again replaces its rules",
        max_length=100,
        widget=forms.TextInput(attrs={"placeholder": "kernels"}),
        error_messages={
            "required": "Enter a name.",
            "max_length": "At most %(limit_value)d characters.",
        },
    )
    repository = PatternsField("repository")
    text = forms.CharField(
        label="Content of the file",
        required=False,
        max_length=MAX_FILE_CHARACTERS,
        widget=forms.Textarea(
            attrs={"rows": 8, "placeholder": "/kernels/ @ada", "spellcheck": "false"}
        ),
        error_messages={"max_length": "At most %(limit_value)d characters."},
        strip=False,
    )
    file = forms.FileField(label="Or the file", required=False)

    def __init__(self, data: Any = None, files: Any = None) -> None:
        super().__init__(data, files, auto_id="owners_%s")

    def clean(self) -> dict[str, Any]:
        """Take the text of the uploaded file, if there is one."""
        values: dict[str, Any] = super().clean() or {}
        file = values.get("file")
        if file is not None:
            content = file.read(4 * MAX_FILE_CHARACTERS + 1)
            try:
                values["text"] = content.decode("utf-8-sig")
            except UnicodeDecodeError:
                raise forms.ValidationError("The file is not UTF-8 text.") from None
            if "\0" in values["text"]:
                raise forms.ValidationError("The file is not text: it has null characters.")
        if len(values.get("text", "")) > MAX_FILE_CHARACTERS:
            raise forms.ValidationError(f"The file has more than {MAX_FILE_CHARACTERS} characters.")
        if not values.get("text", "").strip() and not self.errors:
            raise forms.ValidationError("Paste the content of the file, or choose the file.")
        return values
