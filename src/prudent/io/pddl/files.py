"""The files of a domain and a problem as plado parses them; its errors become PrudentError."""

import re
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar

from prudent.errors import PrudentError, naming
from prudent.runtime.atomic_files import read_bytes

NAMED = re.compile(r"\([^()]+\)|'[^']+'|\?[\w-]+")
"""What an error of plado may name: an atom, a name in quotes, a variable."""

Answer = TypeVar("Answer")


def parsed(domain: bytes, path: Path, problem: Path) -> tuple[Any, Any]:
    """Return a domain, given as its file's bytes, and a problem as plado reads them."""
    from plado.parser import normalize_conditions, normalize_effects
    from plado.parser.parser import LookaheadStreamer, parse_domain, parse_problem
    from plado.parser.sanity_checks import make_checks
    from plado.parser.tokenizer import tokenize
    from plado.pddl import Truth

    with naming(path):
        text = _text(domain)
        found = read(lambda: parse_domain(LookaheadStreamer(tokenize(text))))
        for action in found.actions:
            if _nested(action.effect):
                raise PrudentError(
                    f"line {line_of_action(text, action.name)}: action {action.name} has a probabilistic effect within "
                    "another; merge them into one, and multiply their probabilities"
                )
    content = read_bytes(problem)
    with naming(problem):
        more = _text(content)
        asked = read(lambda: parse_problem(LookaheadStreamer(tokenize(more))))
        if asked.goal_reward is not None:
            raise PrudentError(
                f"line {line_of(more, ':goal-reward')}: :goal-reward is not a cost, and every run ends in a goal; "
                "leave it out, and let actions add their costs to (total-cost)"
            )
    for action in found.actions:
        if action.precondition is None:  # it always applies; plado expects that to be stated
            action.precondition = Truth()
        action.effect = _numbers_apart(action.effect)

    def check() -> None:
        said = StringIO()
        with redirect_stdout(said), redirect_stderr(said):  # some errors go there, whatever the file given
            make_checks(found, asked, said)
        if said.getvalue():
            raise ValueError(said.getvalue().splitlines()[0].removeprefix("[!] "))
        normalize_conditions(found, asked)
        normalize_effects(found)

    with naming(f"{path} and {problem}"):
        read(check, [(path, text), (problem, more)])
    return found, asked


def read(work: Callable[[], Answer], files: Sequence[tuple[Path, str]] = ()) -> Answer:
    """Return plado's result; raise PrudentError for whatever it cannot read.

    Given the texts of files, an error that names something gets the line where it stands.
    """
    try:
        return work()
    except (PrudentError, KeyboardInterrupt, MemoryError):
        raise
    except RecursionError:
        raise PrudentError("is nested too deeply to be read") from None
    except Exception as error:
        what = re.sub(r"<Token .*'(.*)' @(\d+):(\d+)>", r"'\1' in line \2, column \3", str(error))
        what = re.sub(r"^'@type-(.*)@'$", r"Type '\1' is not defined", what).rstrip(".")
        remedy = "define it, or fix the name" if "not defined" in what else "correct it there"
        for name in NAMED.findall(what):
            for path, text in files:
                if line := line_of(text, rf"(?<![\w-]){re.escape(name.strip(chr(39)))}(?![\w-])"):
                    raise PrudentError(f"{what}, in line {line} of {path.name}; {remedy}") from None
        what = what or type(error).__name__
        raise PrudentError(f"plado cannot read it: {what}; fix that part, or leave it out") from None


def line_of(text: str, pattern: str) -> int:
    """Return the line in which a pattern begins, counted from 1; 0 if there is none."""
    found = re.search(pattern, text, re.IGNORECASE)
    return 0 if found is None else text.count("\n", 0, found.start()) + 1


def line_of_action(text: str, name: str) -> int:
    """Return the line of a domain in which an action begins."""
    return line_of(text, rf"\(\s*:action\s+{re.escape(name)}(?![\w-])")


def _nested(effect: Any, inside: bool = False) -> bool:
    """Return whether an effect has a probabilistic one within another, which plado cannot take apart."""
    outcomes = getattr(effect, "outcomes", ())
    parts = [each.effect for each in outcomes] or getattr(effect, "effects", None) or [getattr(effect, "effect", None)]
    within = inside or bool(outcomes)
    return (inside and bool(outcomes)) or any(_nested(part, within) for part in parts if part is not None)


def _numbers_apart(effect: Any) -> Any:
    """Return an effect in which each unconditional change of a number is an effect of probability 1.

    Plado copies unconditional effects into every probabilistic effect beside them.  Facts may be set twice;
    numbers may not.
    """
    from plado.pddl import ActionEffectTransformer, NumericConstant, NumericEffect
    from plado.pddl import ProbabilisticEffect as Probabilistic
    from plado.pddl import ProbabilisticOutcome as Outcome

    class Apart(ActionEffectTransformer):  # type: ignore[misc]
        def visit_generic(self, effect: Any) -> Any:
            sure = isinstance(effect, NumericEffect)
            return Probabilistic([Outcome(NumericConstant("1"), effect)]) if sure else effect

        def visit_probabilistic_effect(self, effect: Any) -> Any:
            return effect

    return effect.simplify().traverse(Apart())


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise PrudentError("not UTF-8 text") from None
