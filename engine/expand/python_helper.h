// The program that the long-lived python3 process runs. evaluator.cc starts it with -c.
#pragma once

namespace tally {

// Expressions may use some names without importing them: those that a JUBE parameter can see, and
// common standard modules. Each module is imported when it is first named. Standard output is
// redirected, so that a print() in an expression cannot damage the protocol.
inline constexpr const char* python_helper = R"PY(
import _signal, os, sys
_signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # end at once and silently with the engine
source = os.fdopen(os.dup(0), 'rb')
answers = os.fdopen(os.dup(1), 'wb')
os.dup2(2, 1)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
lazy = {name: name for name in (
    'datetime', 'glob', 'grp', 'itertools', 'json', 'math', 'operator', 'platform', 'pwd', 'random',
    're', 'shutil', 'socket', 'string', 'subprocess', 'textwrap', 'time')}
lazy.update(deque='collections', Queue='queue')
names = {'__builtins__': __builtins__, '__name__': 'jube', 'os': os, 'sys': sys}
compiled = {}

def provide(text):
    for name in [n for n in lazy if n in text]:
        module = __import__(lazy.pop(name))
        names[name] = getattr(module, name, module)

def evaluate(text):
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
    results = [evaluate(text) for text in texts]
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
