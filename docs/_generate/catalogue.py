"""Pages of what is in configs/: flags, recipes, variations, operations; and of the exit statuses."""

from itertools import groupby

from detaudit.config import variations, yamlfile
from detaudit.config.choice import Row, load_ops
from detaudit.config.flags import DEVICES, Flag, load_catalogue
from detaudit.config.recipes import load_recipe, read_recipe
from detaudit.config.recipes import names as recipe_names
from detaudit.errors import ExitCode
from detaudit.report import catalogue as report
from detaudit.rules import TABLE
from docs._generate.markdown import code, codes, source, table

MEANINGS = {
    ExitCode.DETERMINISTIC: "deterministic, identical, passed, or robust",
    ExitCode.NONDETERMINISTIC: "nondeterministic, different, failed, or sensitive",
    ExitCode.USAGE: "usage error: the command line, a file of recipes or audits, or a folder cannot be used",
    ExitCode.INTERNAL: "internal error: a bug in detaudit; it is no verdict",
    ExitCode.INCONCLUSIVE: "inconclusive: a run failed, timed out or recorded nothing, or results cannot be written; "
    "`git bisect run` skips such a commit",
    ExitCode.INTERRUPTED: "interrupted, by Ctrl-C or a closed pipe: what had finished is reported",
}


def flags() -> str:
    """Return a table of all flags, and a section for each."""
    catalogue = load_catalogue()
    parts = [report.listing([], list(catalogue), [], "markdown")]
    parts.append("\n".join(f"- *{action}*: {meaning}" for action, meaning in report.ACTIONS.items()))
    for framework, group in groupby(catalogue, key=lambda flag: flag.framework):
        parts += [f"## Flags of {framework}", *map(_flag, group)]
    return "\n\n".join(parts)


def _flag(flag: Flag) -> str:
    catalogue = load_catalogue()
    using = [name for name in recipe_names() if flag in load_recipe(name, catalogue, devices=DEVICES).flags]
    lines = report.one_flag(flag, using, "markdown").splitlines()
    lines = [f"- source: {source(flag.source)}" if line.startswith("- source: ") else line for line in lines]
    return "\n".join([f"#{lines[0]}", *lines[1:]])


def rules() -> str:
    """Return a table of all rules of edits, and a section for each."""
    rows = [[f"[{code(rule.name)}](#{rule.name})", rule.title] for rule in TABLE]
    return "\n\n".join([table(["rule", "what it does"], rows), *(report.one_rule(rule, "markdown") for rule in TABLE)])


def retired() -> str:
    """Return a table of the settings that detaudit does not offer."""
    rows = [
        [codes(row.names), row.status, row.why, code(row.replacement), source(row.source)]
        for row in yamlfile.load_retired()
    ]
    return table(["setting", "status", "why", "use instead", "source"], rows)


def recipes() -> str:
    """Return a section for each recipe, as it is on a machine with several GPUs."""
    catalogue = load_catalogue()
    return "\n\n".join(
        report.one_recipe((read_recipe(name), load_recipe(name, catalogue, devices=DEVICES)), "markdown")
        for name in recipe_names()
    )


def varied() -> str:
    """Return a table of all variations, and a section for each."""
    rows = list(variations.load_variations())
    listed = [[code(row.id), row.title, row.cause, "only by name" if row.expected else "yes"] for row in rows]
    parts = [table(["variation", "what differs", "cause", "in `all`"], listed)]
    for row in rows:
        facts = {
            "cause": row.cause,
            "variables": ", ".join(map(_values, row.env.items())),
            "needs": row.needs,
            "fix": row.fix,
            "pinned by": codes(row.flags),
            "note": row.note,
            "source": source(row.source),
        }
        lines = [f"- {name}: {text}" for name, text in facts.items() if text]
        parts.append("\n".join([f"## {row.id}", "", row.title, "", *lines]))
    return "\n\n".join(parts)


def _values(variable: tuple[str, variations.Values]) -> str:
    name, values = variable
    others = codes("the number of the run - 1" if value == "NUMBER" else value or "(empty)" for value in values.varied)
    return f"{code(name)} ({code(values.control) or 'empty'} in the control, then {others})"


def operations() -> str:
    """Return a table of the operations that can race, for each framework and device."""
    rows = load_ops()
    parts = []
    for framework in dict.fromkeys(row.framework for row in rows):
        for device, name in (("cpu", "the CPU"), ("gpu", "a GPU")):
            found = [_operation(row) for row in rows if (row.framework, row.device) == (framework, device)]
            heads = ["operations", "when", "fixed by", "observed", "source"]
            parts += [f"## {framework} on {name}", table(heads, found)] if found else []
    return "\n\n".join(parts)


def _operation(row: Row) -> list[str]:
    fixes = {
        "deterministic-algorithms": "deterministic algorithms" if row.framework == "torch" else "op determinism",
        "one-thread": "one thread",
        "edit": f"an edit: {row.replacement}",
    }
    return [
        codes(row.ops),
        row.when or "always",
        fixes[row.fixed_by],
        "yes" if row.measured else "",
        source(row.source),
    ]


def exit_statuses() -> str:
    """Return a table of the exit statuses. Raises KeyError for one without a meaning."""
    return table(["status", "meaning"], [[f"`{int(status)}`", MEANINGS[status]] for status in ExitCode])
