"""The stubs of llvmlite name only existing functions, with their parameters."""

import ast
import inspect

from llvmlite import binding

from tests.architecture.gates import ROOT

STUB = ROOT / "typings" / "llvmlite" / "binding.pyi"


def parameters(node: ast.FunctionDef) -> list[str]:
    arguments = node.args
    return [item.arg for item in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]


def functions(body: list[ast.stmt]) -> list[ast.FunctionDef]:
    return [item for item in body if isinstance(item, ast.FunctionDef) and not is_property(item)]


def is_property(node: ast.FunctionDef) -> bool:
    return any(isinstance(item, ast.Name) and item.id == "property" for item in node.decorator_list)


def differing(owner: object, node: ast.FunctionDef) -> list[str]:
    found = inspect.getattr_static(owner, node.name, None)
    if found is None:
        return [f"{node.name} does not exist"]
    actual = list(inspect.signature(getattr(found, "__func__", found)).parameters)
    stated = parameters(node)
    return [] if actual[: len(stated)] == stated else [f"{node.name}{actual} is stated as {stated}"]


def test_stubs_agree_with_llvmlite() -> None:
    tree = ast.parse(STUB.read_text("utf-8"))
    problems = [text for node in functions(tree.body) for text in differing(binding, node)]
    classes = [item for item in tree.body if isinstance(item, ast.ClassDef)]
    assert classes
    for stated in classes:
        if stated.name == "ObjectRef":
            continue
        actual = getattr(binding, stated.name)
        problems += [text for node in functions(stated.body) for text in differing(actual, node)]
    assert problems == []
