#!/usr/bin/env python3
"""Headers and tables from the binary interfaces kept in abi/*.tsv.

    gen_pjrt.py header pjrt.tsv EXT.def OUT.h   types, every offset asserted
    gen_pjrt.py slots  pjrt.tsv EXT.def OUT.h   our implementations, declared
    gen_pjrt.py table  pjrt.tsv EXT.def OUT.c   checks and the filled tables
    gen_pjrt.py calls  pjrt.tsv EXT.def OUT.def what tests know of each function
    gen_pjrt.py docs   pjrt.tsv EXT.def OUT.md  docs/pjrt.md
    gen_pjrt.py check  pjrt.tsv EXT.def OUT.md  is that file up to date?

EXT.def has a row for each extension: offered, or why not.  The text is our
own; the facts are the table's.  A slot that nobody implements gets a weak stub
that answers UNIMPLEMENTED with the function's name.  Before each call its
arguments are checked: the struct must hold the fields that every version has,
and a handle is NULL only where MAY_BE_NULL says so."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# The parts of the interface that the plugin is compiled against.
HEADERS = ('pjrt_c_api.h', 'pjrt_c_api_layouts_extension.h',
           'pjrt_c_api_memory_descriptions_extension.h',
           'pjrt_c_api_ffi_extension.h', 'pjrt_c_api_gpu_extension.h',
           'pjrt_c_api_shardings_extension.h',
           'pjrt_c_api_custom_partitioner_extension.h',
           'pjrt_c_api_raw_buffer_extension.h', 'pjrt_c_api_device_event.h',
           'pjrt_c_api_abi_version_extension.h',
           'pjrt_c_api_cross_host_transfers_extension.h',
           'pjrt_c_api_profiler_extension.h', 'profiler_c_api.h')
OURS = ('PJRT_Error', 'PJRT_Memory', 'PJRT_RawBuffer')  # laid out by us

# Numbers that the interface has names of C++ for.
NAMES = {'xla::GlobalDeviceId': 'int32_t', 'xla::CrossHostTransferKey': 'int64_t'}
# Marked as outputs, and arrays of the caller's that outputs are written to.
ROOM = {('PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args', 'send_events'),
        ('PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args', 'buffers'),
        ('PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args',
         'buffers')}
# Functions of extensions that answer by a callback alone.
VOID = {'PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice'}

ERRORS = {'PJRT': 'PJRT_Error*', 'PLUGIN': 'PLUGIN_Profiler_Error*'}

# Handles that a caller may leave out; what is destroyed may always be NULL.
MAY_BE_NULL = {
    'PJRT_Client_BufferFromHostBuffer': ('device', 'memory'),
    'PJRT_Client_CreateUninitializedBuffer': ('device', 'memory'),
    'PJRT_Client_CreateViewOfDeviceBuffer': ('device', 'memory'),
    # Frameworks leave `client` unwritten; in an error there is no buffer.
    'PJRT_Client_FulfillAliasBuffer': ('client', 'buffer'),
    'PJRT_LoadedExecutable_Execute': ('execute_device',),
    'PJRT_Compile': ('client',),
}
HANDLES = {'PJRT_' + n for n in (
    'Error', 'Event', 'Client', 'Device', 'DeviceDescription', 'Memory',
    'Buffer', 'Executable', 'LoadedExecutable', 'ExecuteContext', 'Program',
    'ExecuteOptions', 'TopologyDescription', 'CopyToDeviceStream', 'Chunk',
    'AsyncHostToDeviceTransferManager', 'FulfillAliasBufferCallback',
    'AsyncTrackingEvent', 'RawBuffer', 'Layouts_MemoryLayout',
    'MemoryDescription', 'RuntimeAbiVersion', 'ExecutableAbiVersion')}


class Table:
    def __init__(self, path, extensions):
        self.const, self.api, self.enum = [], [], {}
        self.ext, self.since = [], {}
        self.callback, self.struct = {}, {}
        for line in open(path):
            r = line.rstrip('\n').split('\t')
            if r[0] == 'const':
                self.const.append((r[1], r[2]))
            elif r[0] == 'api':
                self.api.append(r[3:6])
                self.since[r[3]] = r[6]
            elif r[0] == 'ext':
                self.ext.append((r[2].split('_Type_')[1], r[2], r[3]))
            elif r[0] == 'enum':
                self.enum[r[1]] = (r[3], [])
            elif r[0] == 'value':
                self.enum[r[1]][1].append((r[2], r[3]))
            elif r[0] == 'callback':
                self.callback[r[1]] = (r[3], r[2])
            elif r[0] == 'struct':
                self.struct[r[1]] = (r[4], r[2], r[3], [])
            elif r[0] == 'field':
                for name, ours in NAMES.items():
                    r[3] = r[3].replace(name, ours)
                if (r[1], r[2]) in ROOM:
                    r[6] = '-'
                self.struct[r[1]][3].append(r[2:])
        self.name_slots()
        self.extension_rows = re.findall(r'^(\w+)\((\w+), *"(.*)"\)',
                                         open(extensions).read(), re.M)
        offered = [n for kind, n, _ in self.extension_rows
                   if kind == 'EXTENSION']
        lost = {e[0] for e in self.ext} - {n for _, n, _ in
                                           self.extension_rows}
        if lost:
            sys.exit('%s: no row for %s' % (extensions, ', '.join(lost)))
        self.ext = [e for e in self.ext if e[0] in offered]

    def name_slots(self):
        """Slots whose type is called otherwise than their function."""
        for name, (_, _, _, fields) in self.struct.items():
            for f in fields:
                if (name.endswith('_Extension') and
                        f[0] + '_Args' in self.struct and
                        f[1].rstrip('*') + '_Args' not in self.struct):
                    f[1] = f[0] + '*'

    def extension_slots(self, struct):
        """(field, function) of an extension's functions."""
        return [(f[0], f[1].rstrip('*')) for f in self.struct[struct][3]
                if f[1].rstrip('*') + '_Args' in self.struct]

    def functions(self):
        """(name, what it returns, its struct) of all that we implement."""
        api = [(n, r, a.rstrip('*')) for n, r, a in self.api]
        return api + [(f, 'void' if f in VOID else 'PJRT_Error*', f + '_Args')
                      for e in self.ext
                      for _, f in self.extension_slots(e[2])]

    def least(self, struct, minor=None):
        """The end of what callers have: all of them, or those of 0.minor."""
        def has(since):
            if since == '-':
                return True
            return minor is not None and float(since.split('.')[1]) <= minor
        return max([0] + [int(f[2]) + int(f[3]) for f in self.struct[struct][3]
                          if has(f[5])])

    def required(self, function, args):
        """Fields that must not be NULL."""
        if re.search(r'_Destroy(_|$)', function):
            return []
        return [f[0] for f in self.struct[args][3]
                if f[4] == '-' and f[5] == '-' and f[1].endswith('*') and
                f[1].replace('const ', '').rstrip('*') in HANDLES and
                f[1].count('*') == 1 and
                f[0] not in MAY_BE_NULL.get(function, ())]

    def lists(self, args):
        """(list, count) of what a caller gives: num_x or x_size beside a
        pointer x, else beside the pointer that stands before or after it.
        There is a device always: of its lists, how many arguments."""
        fields = [f for f in self.struct[args][3] if f[4] != 'out' and
                  f[0] not in ('struct_size', 'extension_start')]
        handle = {f[0] for f in fields if
                  f[1].replace('const ', '').rstrip('*') in HANDLES and
                  f[1].count('*') == 1}
        pointer = {f[0]: f for f in fields if f[1].endswith('*') and
                   f[0] not in handle}
        found = []
        for i, f in enumerate(fields):
            m = re.match(r'(?:\w+_)?num_(\w+)$|(\w+)_size$|size$', f[0])
            if (not m or f[1] not in ('size_t', 'int64_t') or f[4] != '-' or
                    f[0] == 'num_devices'):
                continue
            near = [m.group(1), m.group(2)] + [
                fields[k][0] for k in (i - 1, i + 1, i - 2)
                if 0 <= k < len(fields)]
            at = next((n for n in near if n in pointer), None)
            if at:
                found.append((pointer[at], f))
        return found

    def wanted(self, header):
        return header.split('/')[-1] in HEADERS

    def structs(self):
        return {n: s for n, s in self.struct.items() if self.wanted(s[0])}


def declare(ctype, name):
    """'void (*)(int)' and 'f' give 'void (*f)(int)'."""
    if '(*)' in ctype:
        return ctype.replace('(*)', '(*%s)' % name, 1)
    m = re.match(r'(.*?)\s*(\[\d+\])$', ctype)
    if m:
        return '%s %s%s' % (m.group(1), name, m.group(2))
    return '%s %s' % (ctype, name)


def struct_text(name, fields):
    out, union = ['struct %s {' % name], []

    def flush():
        if union:
            out.append('    union {')
            out.extend('        %s;' % u for u in union)
            out.append('    };')
            union.clear()

    for field, ctype, *_ in fields:
        if field.startswith('<union>.'):
            union.append(declare(ctype, field[8:]))
            continue
        flush()
        out.append('    %s;' % declare(ctype, field))
    flush()
    out.append('};')
    return out


def header(t):
    structs = t.structs()
    out = ['/* Made by tools/gen_pjrt.py from abi/pjrt.tsv.  Do not edit. */',
           '#ifndef PJRT_ABI_H', '#define PJRT_ABI_H', '',
           '#include <stdbool.h>', '#include <stddef.h>',
           '#include <stdint.h>', '']
    out += ['#define %s %s' % c for c in t.const]
    out.append('')
    for name, (head, values) in t.enum.items():
        if t.wanted(head):
            out.append('typedef enum {')
            out += ['    %s = %s,' % v for v in values]
            out.append('} %s;' % name)
    text = ' '.join(f[1] for s in structs.values() for f in s[3])
    text += ' '.join(c for h, c in t.callback.values() if t.wanted(h))
    known = set(t.enum) | set(t.callback)
    functions = {n[:-5] for n in structs if n.endswith('_Args')} - known
    names = set(re.findall(r'\b(?:PJRT|PLUGIN)_\w+', text)) | set(structs)
    out.append('')
    out += ['typedef struct %s %s;' % (n, n)
            for n in sorted(names - known - functions)]
    out.append('')
    for name, (head, sig) in t.callback.items():
        if t.wanted(head):
            out.append('typedef %s;' % declare(sig, name))
    out.append('')
    returns = {name: ret for name, ret, _ in t.functions()}
    used = set(re.findall(r'\b(?:PJRT|PLUGIN)_\w+', text))
    for name in sorted(functions & used):
        out.append('typedef %s %s(%s_Args *args);' %
                   (returns.get(name, ERRORS[name.split('_')[0]]), name, name))
    out.append('')
    for name, (_, _, _, fields) in structs.items():
        if name not in OURS:
            out += struct_text(name, fields)
    out.append('')
    for name, (_, size, end, fields) in structs.items():
        if name in OURS:
            continue
        if end != '-':
            out.append('enum { %s_STRUCT_SIZE = %s, %s_LEAST = %d };' %
                       (name, end, name, t.least(name)))
        out.append('_Static_assert(sizeof(%s) == %s, "%s");' %
                   (name, size, name))
        for field, _, at, nbytes, *_ in fields:
            member = field.replace('<union>.', '')
            out.append('_Static_assert(offsetof(%s, %s) == %s && '
                       'sizeof(((%s *)0)->%s) == %s, "%s.%s");' %
                       (name, member, at, name, member, nbytes, name, member))
    out += ['', '#endif']
    return out


def snake(name):
    return re.sub(r'([a-z0-9])([A-Z])', r'\1_\2', name).lower()


def slots(t):
    out = ['/* Made by tools/gen_pjrt.py from abi/pjrt.tsv.  Do not edit. */',
           '#ifndef PJRT_SLOTS_H', '#define PJRT_SLOTS_H', '',
           '#include "pjrt_abi.h"', '']
    for name, ret, args in t.functions():
        out.append('#define OURS_%s %s' % (name, snake(name)))
        out.append('%s %s(%s *a);' % (ret, snake(name), args))
    out += ['', '#endif']
    return out


def check(t, name, args):
    fn, least = snake(name), t.least(args)
    out = ['static PJRT_Error *check_%s(%s *a)' % (fn, args), '{',
           '    if (a->struct_size < %d)' % least,
           '        return pjrt_short("%s", a->struct_size, %d);' %
           (name, least)]
    for f in t.required(name, args):
        out += ['    if (!a->%s)' % f,
                '        return pjrt_null("%s", "%s");' % (name, f)]
    return out + ['    return %s(a);' % fn, '}']


def table(t):
    out = ['/* Made by tools/gen_pjrt.py from abi/pjrt.tsv.  Do not edit. */',
           '#include "pjrt.h"', '']
    fill, stub = [], {n for n, *_ in t.api}
    for name, ret, args in t.functions():
        fn = snake(name)
        if ret == 'void':
            if name in stub:
                fill.append('    .%s = %s,' % (name, fn))
            continue
        if name in stub:
            out += ['__attribute__((weak)) PJRT_Error *%s(%s *a)' % (fn, args),
                    '{', '    (void)a;',
                    '    return pjrt_unimplemented("%s");' % name, '}']
            fill.append('    .%s = check_%s,' % (name, fn))
        out += check(t, name, args)
    last = '(PJRT_Extension_Base *)(uintptr_t)&pjrt_sundog.base'
    for _, kind, struct in reversed(t.ext):
        var = snake(struct)
        out += ['static const %s %s = {' % (struct, var),
                '    .base = {.struct_size = %s_STRUCT_SIZE,' % struct,
                '             .type = %s, .next = %s},' % (kind, last)]
        out += ['    .%s = %s%s,' % (field, '' if f in VOID else 'check_',
                                     snake(f))
                for field, f in t.extension_slots(struct)]
        out += ['    .%s = (%s)(uintptr_t)&%s,' %
                (f[0], f[1], snake(f[1].rstrip('*')))
                for f in t.struct[struct][3] if f[1].endswith('_Api*')]
        out.append('};')
        last = '(PJRT_Extension_Base *)(uintptr_t)&%s.base' % var
    out += ['', 'const PJRT_Api pjrt_api = {',
            '    .struct_size = PJRT_Api_STRUCT_SIZE,',
            '    .extension_start = %s,' % last,
            '    .pjrt_api_version = {.struct_size = '
            'PJRT_Api_Version_STRUCT_SIZE,',
            '        .major_version = PJRT_API_MAJOR, '
            '.minor_version = PJRT_API_MINOR},']
    out += fill + ['};']
    return out


def calls(t):
    """One row a function: its slot, the ends of its struct for every caller,
    for 0.112 and for this version, the handles that must be there, the fields
    that a call writes, and lists with the places of their counts."""
    def rows(fields):
        return ', '.join('{"%s", %s, %s}' % (f[0], f[2], f[3])
                         for f in fields) or '{0}'
    out = ['/* Made by tools/gen_pjrt.py from abi/pjrt.tsv.  Do not edit. */']
    api = {n for n, *_ in t.api}
    for name, ret, args in t.functions():
        need = t.required(name, args) if ret != 'void' else []
        fields = t.struct[args][3]
        lists = ', '.join('{"%s", %s, %s}' % (p[0], p[2], n[2])
                          for p, n in t.lists(args)) or '{0}'
        out.append('%s(%s, %d, %d, %s, NEEDS(%s), GIVES(%s), LISTS(%s))' %
                   ('TELL' if ret == 'void' else
                    'CALL' if name in api else 'EXTRA', name,
                    t.least(args), t.least(args, 112), t.struct[args][2],
                    rows(f for f in fields if f[0] in need),
                    rows(f for f in fields if f[4] == 'out' and
                         f[1] != 'PJRT_Program*'), lists))
    return out


def sources():
    for name in sorted(os.listdir(os.path.join(ROOT, 'plugin'))):
        if name.endswith('.c') or name == 'pjrt_answers.def':
            path = 'plugin/' + name
            yield path, open(os.path.join(ROOT, path)).read()


def found():
    """Our functions: where each is, and what is said above it.  And what is
    refused: messages of SD_UNIMPLEMENTED and their files."""
    where, refused = {}, []
    define = re.compile(r'(/\*(?:(?!\*/).)*\*/\n)?^(?:PJRT_Error \*|void )\n?'
                        r'(pjrt_\w+)\(\s*PJRT_\w+ \*a\)\n\{', re.M | re.S)
    answer = re.compile(r'(/\*(?:(?!\*/).)*\*/\n)?^ANSWER\((\w+),',
                        re.M | re.S)
    refuse = re.compile(r'sd_error\(\s*SD_UNIMPLEMENTED,\s*'
                        r'((?:"(?:[^"\\]|\\.)*"\s*|PRI\w+\s*|PJRT_PLATFORM\s*)'
                        r'+)')
    for path, text in sources():
        for m in [*define.finditer(text), *answer.finditer(text)]:
            note = re.sub(r'\s*\n \* *', ' ', (m.group(1) or '').strip())
            if note.startswith('/* ----'):
                note = ''
            where[snake(m.group(2))] = (path, note[3:-3])
        for m in refuse.finditer(text):
            words = re.findall(r'"((?:[^"\\]|\\.)*)"|(PRI\w+|PJRT_PLATFORM)',
                               m.group(1))
            said = ''.join(w or {'PJRT_PLATFORM': 'xpu'}.get(p, '')
                           for w, p in words)
            said = re.sub(r'%(\.\*)?l*[sduxz]+|%', '...', said)
            refused.append((path, said.replace('\\"', '"')))
    return where, refused


def docs(t):
    where, refused = found()
    out = ['# The PJRT surface', '',
           'PJRT is the C interface by which JAX and other frameworks reach a '
           'device. This page says which of its functions Sundog has, and '
           'which extensions it offers. `tools/gen_pjrt.py docs` makes it '
           'from `abi/pjrt.tsv` and the sources (`make bless`), and a test '
           'compares.', '',
           '* **since** is the version of the interface that brought the '
           'function. Sundog has API 0.%s.' %
           dict(t.const)['PJRT_API_MINOR'],
           '* **done** means that the function is there; a few of them still '
           'refuse some arguments (last table).',
           '* **refused** means that it answers UNIMPLEMENTED with its name.',
           '* A struct that is shorter than in every version, or a handle '
           'that is NULL where it must not be, is INVALID_ARGUMENT and named.',
           '', '## Functions', '',
           '| function | since | state | file | remark |',
           '|---|---|---|---|---|']

    def row(name, since):
        path, note = where.get(snake(name), ('', ''))
        return '| `%s` | %s | %s | %s | %s |' % (
            name, since, 'done' if path else '**refused**',
            '`%s`' % path if path else '', note)

    out += [row(n, t.since[n]) for n, *_ in t.api]
    out += ['', '## Extensions', '', '| extension | state | why |', '|---|---|---|']
    out += ['| %s | %s | %s |' %
            (n, 'offered' if kind == 'EXTENSION' else 'not offered', why)
            for kind, n, why in t.extension_rows]
    out += ['', '### Functions of extensions', '',
            '| function | of | state | file | remark |', '|---|---|---|---|---|']
    out += [row(f, e[0]) for e in t.ext for _, f in t.extension_slots(e[2])]
    out += ['', '## What calls that are done may still refuse', '',
            'These answer UNIMPLEMENTED, and the message names what was asked '
            'for. What compiling and running refuse is in `docs/errors.md`.',
            '',
            '| message | file |', '|---|---|']
    out += ['| %s | `%s` |' % (said, path) for path, said in refused
            if said != '... is not implemented']
    return out


def main():
    what, tsv, extensions, to = sys.argv[1:]
    make = {'header': header, 'slots': slots, 'table': table, 'calls': calls,
            'docs': docs, 'check': docs}[what]
    text = '\n'.join(make(Table(tsv, extensions))) + '\n'
    if what == 'check':
        if open(to).read() != text:
            sys.exit('%s is not what tools/gen_pjrt.py docs makes: `make '
                     'bless` makes it anew' % to)
        return
    with open(to, 'w') as f:
        f.write(text)


main()
