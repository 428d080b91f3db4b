"""The package as a whole: what it exports, what it imports, what it says."""

import ast
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import rgld

ROOT = Path(__file__).parents[1]


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )


def test_the_command_starts_without_scikit_learn():
    """`--help` and a wrong path must not wait for it."""
    pytest.importorskip("typer", reason="the command needs the extra 'cli'")
    code = "import sys, rgld.cli._app; print(sorted({'sklearn', 'scipy'} & set(sys.modules)))"
    assert run(code).stdout.strip() == "[]"


def test_a_command_with_a_model_needs_no_scikit_learn(tmp_path):
    """Its import takes longer than the command's work."""
    pytest.importorskip("polars", reason="the command needs the extra 'cli'")
    rng = np.random.default_rng(0)
    (tmp_path / "t.csv").write_text("a,b\n" + "\n".join(f"{x:.3f},{x * x:.3f}" for x in rng.normal(size=300)) + "\n")
    for arguments, needed in (
        (["fit", "t.csv", "--model", "m.rgld"], {"scipy"}),
        (["info", "m.rgld"], set()),
        (["score", "t.csv", "--model", "m.rgld"], {"scipy"}),
        (["check", "t.csv", "--model", "m.rgld"], {"scipy"}),
    ):
        code = (
            f"import os, sys; os.chdir({str(tmp_path)!r}); from rgld.cli._app import run\n"
            f"try: run({arguments})\n"
            "except SystemExit as end: print(end.code, sorted({'sklearn', 'pandas', 'scipy'} & set(sys.modules)))"
        )
        words = run(code).stdout.splitlines()[-1]
        assert words.startswith("0 ") and not {"sklearn", "pandas"} & set(re.findall(r"'(\w+)'", words)), arguments
        assert set(re.findall(r"'(\w+)'", words)) <= needed, arguments


def test_import_loads_nothing_heavy():
    heavy = (
        "pandas",
        "polars",
        "pyarrow",
        "dask",
        "duckdb",
        "pyspark",
        "matplotlib",
        "torch",
        "numba",
        "typer",
        "rich",
    )
    # scikit-learn loads pandas where it is installed: only what comes on top of it counts.
    loaded = f"{{m for m in {heavy} if m in sys.modules}}"
    result = run(
        f"import sys, sklearn.base; before = {loaded}; import rgld; rgld.RGLD; print(sorted({loaded} - before))"
    )
    assert result.stdout.strip() == "[]", result.stderr


def test_everything_public_is_listed():
    public = {n for n, v in vars(rgld).items() if not n.startswith("_") and not isinstance(v, types.ModuleType)}
    assert public - {"TYPE_CHECKING", "Any"} <= set(rgld.__all__)
    assert dir(rgld) == sorted(rgld.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = rgld.nope


def test_import_alone_loads_nothing_at_all():
    result = run("import rgld, sys; print([m for m in ('numpy', 'scipy', 'sklearn') if m in sys.modules])")
    assert result.stdout.strip() == "[]", result.stderr


def test_public_names_say_what_they_are():
    for name in rgld.__all__:
        if name != "__version__":
            assert getattr(rgld, name).__doc__


def test_errors_form_one_tree():
    for error in (rgld.ParameterError, rgld.TableError, rgld.ModelFileError):
        assert issubclass(error, rgld.RGLDError) and issubclass(error, ValueError)
        assert error.__name__ in rgld.exceptions.__doc__


def test_a_constant_has_one_meaning():
    """No two modules have a constant of the same name. (Detectors of the study have the same names on purpose.)"""
    places = {}
    folder = Path(rgld.__file__).parent
    for path in folder.rglob("*.py"):
        if path.parent.name == "detectors":
            continue
        for statement in ast.parse(path.read_text()).body:
            if isinstance(statement, (ast.Assign, ast.AnnAssign)):
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                names = {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
                for name in filter(str.isupper, names):
                    places.setdefault(name, []).append(str(path.relative_to(folder)))
    assert len(places) > 100
    assert not {name: where for name, where in places.items() if len(where) > 1}


def test_every_test_draws_from_its_own_generator():
    """A generator that tests share gives them other numbers, depending on which tests ran before in the process."""
    for path in (ROOT / "tests").rglob("*.py"):
        module = ast.parse(path.read_text())
        shared = {
            target.id
            for statement in module.body
            if isinstance(statement, ast.Assign)
            and re.search(r"(default_rng|RandomState|Random)\([^()]*\)$", ast.unparse(statement.value))
            for target in statement.targets
        }
        for function in [node for node in ast.walk(module) if isinstance(node, (ast.FunctionDef, ast.Lambda))]:
            used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
            assert not used & shared, f"{path}: line {function.lineno} uses {used & shared} of the module"
        imported = {name.name for node in ast.walk(module) if isinstance(node, ast.ImportFrom) for name in node.names}
        assert "RNG" not in imported, f"{path} imports a generator of another module"


@pytest.mark.parametrize("name", ["cuda", pytest.param("NumPy", marks=pytest.mark.exhaustive)])
def test_an_unknown_kernel_is_refused(name):
    result = run("from rgld import RGLD", RGLD_KERNELS=name)
    assert f"RGLD_KERNELS must be one of native, numpy, got {name!r} instead." in result.stderr


def test_the_numpy_kernels_can_be_asked_for():
    assert run("import rgld._kernels as k; print(k.name)", RGLD_KERNELS="numpy").stdout.strip() == "numpy"


@pytest.mark.skipif(not (ROOT / "README.md").exists(), reason="the tests run outside the repository")
def test_documents_name_every_parameter_and_the_version():
    page = (ROOT / "docs" / "reference" / "parameters.md").read_text()
    for name in rgld.RGLD().get_params():
        assert f"`{name}`" in page
    assert f"## {rgld.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert f"version: {rgld.__version__}" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.skipif(not (ROOT / ".ci").exists(), reason="the tests run outside the repository")
def test_links_between_documents_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
