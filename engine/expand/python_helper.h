// The programs that long-lived python3 processes run. evaluator.cc starts them with -c.
#pragma once

namespace tally {

// The streams, and the names that an expression may use.
//
// Expressions may use some names without importing them: those that a JUBE parameter can see, and
// common standard modules. Standard output is redirected, so that a print() in an expression cannot
// damage the protocol.
inline constexpr const char* python_begin = R"PY(
import _operator, _signal, _warnings, os, sys
_warnings.filters.insert(0, ('ignore', None, SyntaxWarning, None, 0))  # `a is 4`: check_expressions() says it
_signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # end at once and silently with the engine
source = os.fdopen(os.dup(0), 'rb')
answers = os.fdopen(os.dup(1), 'wb')
os.dup2(2, 1)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
lazy = {name: name for name in (
    'datetime', 'glob', 'grp', 'itertools', 'json', 'math', 'operator', 'platform', 'pwd', 'random',
    're', 'shutil', 'socket', 'string', 'subprocess', 'textwrap', 'time')}
lazy.update(deque='collections', Queue='queue')
)PY";

// Evaluates. Each module is imported when it is first named.
inline constexpr const char* python_evaluate = R"PY(
PLAIN = (int, float, complex)

class Flag(str):
    """A text that says true or false. Python takes it for true, so that to take it for either is an error."""
    __hash__ = str.__hash__

class Number(str):
    """A text that is a number beside numbers, and a text beside texts: 1.10 is not 1.1 then. Beside a number of which it
    is another form, it could be either, which is an error."""
    def __eq__(self, other):
        same = str.__eq__(self, other)
        if isinstance(other, (Number, *PLAIN)):
            number = other.number if isinstance(other, Number) else other
            if number == self.number and same is not True:
                written = getattr(other, 'text', None)
                if isinstance(other, Number) or str.__str__(self) not in (str(other), str(self.number), written):
                    raise TypeError(self.words)
                return True
        return same is True

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        raise TypeError(self.words_in_sets)

    def __format__(self, form):
        return format(self.number if form[-1:] in tuple('bcdeEfFgGnoxX%') else str.__str__(self), form)

def refused(name, always):
    method = getattr(str, name, lambda self, other: NotImplemented)
    def asked(self, *other):
        if always or isinstance(other[0], PLAIN):
            raise TypeError(self.words)
        return method(self, *other)
    return asked

def calculated(operation, name):
    of_text = getattr(str, name, None)
    def forward(self, other, *more):  # more: pow(a, b, c)
        if isinstance(other, PLAIN):
            return operation(self.number, other, *more)
        if isinstance(other, Number):
            return operation(self.number, other.number, *more)
        return of_text(self, other) if of_text else NotImplemented
    def backward(self, other):
        if isinstance(other, str):  # a text times a number, a format
            return operation(other, self.number if name == '__mul__' or '%s' not in other and name == '__mod__' else str(self))
        return operation(other, self.number) if isinstance(other, PLAIN) else NotImplemented
    return forward, backward

for each in 'eq ne lt le gt ge'.split():
    setattr(Flag, f'__{each}__', refused(f'__{each}__', False))
BUILTIN = {'pow': pow, 'divmod': divmod}
for each in 'lt le gt ge add sub mul truediv floordiv mod divmod pow and or xor lshift rshift'.split():
    name = f'__{each}__'
    operation = BUILTIN.get(each) or getattr(_operator, each, None) or getattr(_operator, each + '_')
    forward, backward = calculated(operation, name)
    setattr(Number, name, forward)
    if each not in ('lt', 'le', 'gt', 'ge'):
        setattr(Number, f'__r{each}__', backward)
for each in 'neg pos abs round trunc floor ceil invert int float index bool'.split():
    name = f'__{each}__'
    setattr(Number, name, lambda self, *others, name=name: getattr(type(self.number), name)(self.number, *others))
Flag.__bool__ = refused('__bool__', True)
Flag.__name__ = Number.__name__ = 'str'
known_texts = {}

def words_of_flag(self):
    text = ascii(str.__str__(self))
    return f"'{self.name}' is the text {text}, which is neither True nor False: write {self.name} == {text}"

def words_of_number(self):
    kind = type(self.number).__name__
    return (f"the type of '{self.name}' is string: give it `type: {kind}`, or compare it with a text, as in "
            f"{self.name} == {ascii(str.__str__(self))}")

def words_in_sets(self):
    return (f"the type of '{self.name}' is string, and a set or dictionary takes it neither for a number nor for a text: "
            f"give it `type: {type(self.number).__name__}`, or write str({self.name}), or a list")

Number.words_in_sets = property(words_in_sets)
Flag.words, Number.words = property(words_of_flag), property(words_of_number)

def text_of(text, name, number=None):
    known = known_texts.get((text, name))
    if known is None:
        if len(known_texts) > 20000:
            known_texts.clear()
        known = known_texts[text, name] = Flag(text) if number is None else Number(text)
        known.name, known.number = name, number
    return known

class Written:
    """A number of an expression that knows how it is written: 1e-4 is the text 1e-4."""
    def __neg__(self):
        return signed(type(self), '-', self, self.plain.__neg__(self))

    def __pos__(self):
        return signed(type(self), '+', self, self.plain.__pos__(self))

class Whole(Written, int):
    plain = int

class Floating(Written, float):
    plain = float

Whole.__name__, Floating.__name__ = 'int', 'float'

def signed(kind, sign, number, value):
    made = kind(value)
    made.text = sign + number.text
    return made

def number_of(text):
    try:
        made = Whole(int(text, 0))
    except ValueError:
        made = Floating(text)
    made.text = text
    return made

names = {'__builtins__': __builtins__, '__name__': 'jube', 'os': os, 'sys': sys, '__text__': text_of,
         '__number__': number_of}
compiled = {}

def provide(text):
    for name in [n for n in lazy if n in text]:
        module = __import__(lazy.pop(name))
        names[name] = getattr(module, name, module)

def answer(text):
    try:
        code = compiled.get(text)
        if code is None:
            provide(text)
            code = compile(text.lstrip(' \t'), '<string>', 'eval')
            if len(compiled) > 20000:
                compiled.clear()
            compiled[text] = code
        return True, str(eval(code, dict(names)))
    except SystemExit as error:
        return False, f'it ends Python, exit({error.code!r}), instead of giving a value'
    except BaseException as error:
        kind = type(error).__name__
        return False, str(error) or kind
)PY";

// Parses (0x400 is Python's PyCF_ONLY_AST: nothing is compiled) and evaluates nothing. The first
// character of a text says what is asked: s, whether it can be parsed; n, also whether every name
// that is certainly looked up exists.
inline constexpr const char* python_read = R"PY(
known = set(dir(__builtins__)) | set(lazy) | {'os', 'sys', '__builtins__', '__name__', '__text__', '__number__'}
known |= {'exit', 'quit', 'help', 'copyright', 'credits', 'license'}  # of Python's module site

def certain(node):
    kind = type(node).__name__
    if kind == 'IfExp':
        return [node.test]
    if kind == 'BoolOp':
        return node.values[:1]
    if kind == 'Compare':
        return [node.left, node.comparators[0]]
    if kind == 'Lambda':
        return []
    if kind in ('ListComp', 'SetComp', 'DictComp', 'GeneratorExp'):
        return [node.generators[0].iter]
    found = []
    for field in node._fields:
        value = getattr(node, field, None)
        for each in value if isinstance(value, list) else [value]:
            if hasattr(each, '_fields'):
                found.append(each)
    return found

def missing(tree):
    todo = [tree]
    while todo:
        node = todo.pop()
        kind = type(node).__name__
        if kind == 'NamedExpr':  # it makes names
            return None
        if kind == 'Name' and node.id not in known:
            return node.id
        todo.extend(reversed(certain(node)))
    return None

def answer(text):
    try:
        tree = compile(text[1:].lstrip(' \t'), '<string>', 'eval', 0x400)
        name = missing(tree.body) if text[0] == 'n' else None
    except BaseException as error:
        return False, str(error) or type(error).__name__
    return name is None, '' if name is None else f"name '{name}' is not defined"
)PY";

// Serves requests with answer().
inline constexpr const char* python_serve = R"PY(
def encode(text):
    try:
        return text.encode('utf-8', 'surrogateescape')
    except UnicodeEncodeError:
        return text.encode('utf-8', 'backslashreplace')

while True:
    header = source.readline()
    if not header:
        break
    texts = [source.read(int(size)).decode('utf-8', 'surrogateescape') for size in header.split()]
    results = [answer(text) for text in texts]
    # An error's size is negative and one more than its length, so that an empty one still shows.
    encoded = [(ok, encode(value)) for ok, value in results]
    answers.write(' '.join(
        str(len(value)) if ok else str(-len(value) - 1) for ok, value in encoded).encode() + b'\n')
    answers.write(b''.join(value for _, value in encoded))
    answers.flush()
    sys.stdout.flush()
os._exit(0)
)PY";

}  // namespace tally
