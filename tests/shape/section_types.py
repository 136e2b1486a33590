"""Which section of the configuration an expression is, by simple rules over the syntax tree.

An expression is a section S when it is

* a parameter, a variable or a field annotated with S (also `S | None`, `S | T`, or text of these);
* assigned, unpacked or looped over from an expression that is one; a list of rows gives rows;
* `x.name`, where x is a section whose child `name` is S;
* `self.name`, where the class declares a field `name` that is S, or assigns one to `self.name`; `x.name`,
  where any class does.

What these miss, such as a section in a dictionary, is not seen as read: better a key too many that asks for a
reason than one that nothing reads.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from strop.config.keys import Section
from strop.config.schema import Leaf, children
from strop.config.tree import Config

Types = set[type[Section]]
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
BLOCKS = ast.stmt | ast.ExceptHandler | ast.match_case
COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def every_section(of: type[Section] = Config) -> dict[str, type[Section]]:
    """Class name → section, the root and the rows of lists among them."""
    found = {of.__name__: of}
    for child in children(of).values():
        below = child.rows if isinstance(child, Leaf) else child
        if below:
            found |= every_section(below)
    return found


SECTIONS = every_section()


def statements(node: ast.AST) -> list[ast.AST]:
    """Those below, as `ast.walk` has them; of ten nodes nine are in expressions, where no statement is."""
    found = [node]
    for each in found:
        for part in each._fields:
            below = getattr(each, part, None)
            if isinstance(below, list):
                found += [child for child in below if isinstance(child, BLOCKS)]
    return found


@dataclass
class Reads:
    """What was read: (section, key) → places."""

    places: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))

    def in_files(self, trees: Iterable[tuple[str, ast.Module]]) -> "Reads":
        """Read all files twice: first for the fields of their classes, then for what is read."""
        files = list(trees)
        fields = Fields()
        classes = [node for _, tree in files for node in statements(tree) if isinstance(node, ast.ClassDef)]
        for _ in range(2):  # a field may be assigned from another one
            for node in classes:
                _note_fields(node, fields)
        for name, tree in files:
            self._walk(name, tree, _Scope({}, fields))
        return self

    def _walk(self, file: str, node: ast.AST, scope: "_Scope") -> None:
        if isinstance(node, ast.ClassDef):
            scope = _Scope(dict(scope.names), scope.fields, node)
        elif isinstance(node, FUNCTIONS):
            scope = scope.within(node)
        elif isinstance(node, COMPREHENSIONS):
            scope = _Scope(dict(scope.names), scope.fields, scope.owner)
            for generator in node.generators:
                scope.loop(generator.target, generator.iter)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            for section in scope.types_of(node.value):
                self.places[section.__name__, node.attr].append(f"{file}:{node.lineno}")
        for child in ast.iter_child_nodes(node):
            self._walk(file, child, scope)


@dataclass
class Fields:
    """The fields that are sections: of each class, and by name of any."""

    of_class: dict[tuple[ast.ClassDef | None, str], Types] = field(default_factory=lambda: defaultdict(set))
    of_any: dict[str, Types] = field(default_factory=lambda: defaultdict(set))

    def note(self, owner: ast.ClassDef, name: str, types: Types) -> None:
        self.of_class[owner, name] |= types
        self.of_any[name] |= types


@dataclass
class _Scope:
    names: dict[str, Types]
    fields: Fields
    owner: ast.ClassDef | None = None
    """The class that `self` is of."""

    def within(self, function: FUNCTIONS) -> "_Scope":
        """Its parameters, and what is assigned anywhere in it."""
        inner = _Scope(dict(self.names), self.fields, self.owner)
        arguments = function.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            inner.names[argument.arg] = _named(argument.annotation)
        if not isinstance(function, ast.Lambda):
            for statement in statements(function):
                inner.learn(statement)
        return inner

    def learn(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self.assign(target, value)
            case ast.AnnAssign(target=target, annotation=annotation):
                self.bind(target, _named(annotation))
            case ast.For(target=target, iter=iterated) | ast.AsyncFor(target=target, iter=iterated):
                self.loop(target, iterated)

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for each, given in zip(target.elts, value.elts, strict=False):
                self.assign(each, given)
        else:
            self.bind(target, self.types_of(value))

    def loop(self, target: ast.expr, iterated: ast.expr) -> None:
        """`for row in rows`, `for i, row in enumerate(rows)`, `for row, other in zip(rows, others)`."""
        if isinstance(target, ast.Tuple) and isinstance(iterated, ast.Call):
            sources = iterated.args if len(iterated.args) > 1 else [ast.Constant(0), *iterated.args]
            for each, source in zip(target.elts, sources, strict=False):
                self.bind(each, self.rows_of(source))
        else:
            self.bind(target, self.rows_of(iterated))

    def bind(self, target: ast.expr, types: Types) -> None:
        if isinstance(target, ast.Name) and types:
            self.names[target.id] = self.names.get(target.id, set()) | types

    def types_of(self, node: ast.expr) -> Types:
        match node:
            case ast.Name(id=name):
                return self.names.get(name, set())
            case ast.Attribute(value=value, attr=attribute):
                if isinstance(value, ast.Name) and value.id == "self":
                    return self.fields.of_class[self.owner, attribute]
                sections = self.types_of(value)
                below = {_child(section, attribute) for section in sections} - {None}
                return below if sections else self.fields.of_any[attribute]
            case ast.BoolOp(values=values):
                return {each for value in values for each in self.types_of(value)}
        return set()

    def rows_of(self, node: ast.expr) -> Types:
        """What an element of `node` is; `enumerate`, `sorted` and the like pass it through."""
        if isinstance(node, ast.Call):
            return {each for argument in node.args for each in self.rows_of(argument)}
        if isinstance(node, ast.Name):
            return self.names.get(f"{node.id}[]", set())
        if isinstance(node, ast.Attribute):
            return {row for section in self.types_of(node.value) for row in _rows(section, node.attr)}
        return set()


def _child(section: type[Section], name: str) -> type[Section] | None:
    child = children(section).get(name)
    return None if child is None or isinstance(child, Leaf) else child


def _rows(section: type[Section], name: str) -> Iterator[type[Section]]:
    child = children(section).get(name)
    if isinstance(child, Leaf) and child.rows:
        yield child.rows


def _named(annotation: ast.expr | None) -> Types:
    """The sections whose names are in an annotation."""
    if annotation is None:
        return set()
    text = ast.unparse(annotation).replace("'", "").replace('"', "")
    return {SECTIONS[word] for word in text.replace("|", " ").split() if word in SECTIONS}


def _note_fields(node: ast.ClassDef, fields: Fields) -> None:
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            fields.note(node, statement.target.id, _named(statement.annotation))
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            scope = _Scope({}, fields, node).within(statement)
            for inner in statements(statement):
                if isinstance(inner, ast.Assign):
                    for target in inner.targets:
                        _note_assignment(target, inner.value, scope)


def _note_assignment(target: ast.expr, value: ast.expr, scope: _Scope) -> None:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for each, given in zip(target.elts, value.elts, strict=False):
            _note_assignment(each, given, scope)
    elif isinstance(target, ast.Attribute) and scope.owner:
        scope.fields.note(scope.owner, target.attr, scope.types_of(value))
