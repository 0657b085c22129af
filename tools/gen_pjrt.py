#!/usr/bin/env python3
"""Headers and tables from the binary interfaces kept in abi/*.tsv.

    gen_pjrt.py header pjrt.tsv OUT.h    types, with every offset asserted
    gen_pjrt.py slots  pjrt.tsv OUT.h    declarations of our implementations
    gen_pjrt.py table  pjrt.tsv OUT.c    stubs, checks and the filled table

The text is our own; the facts are the table's.  A slot that nobody implements
gets a weak stub that answers UNIMPLEMENTED with the function's name."""
import re
import sys

# The parts of the interface that the plugin is compiled against.
HEADERS = ('pjrt_c_api.h', 'pjrt_c_api_layouts_extension.h',
           'pjrt_c_api_memory_descriptions_extension.h',
           'pjrt_c_api_ffi_extension.h', 'pjrt_c_api_shardings_extension.h')
OURS = ('PJRT_Error', 'PJRT_Memory')  # handles: the plugin lays them out


class Table:
    def __init__(self, path):
        self.const, self.api, self.enum = [], [], {}
        self.callback, self.struct = {}, {}
        for line in open(path):
            r = line.rstrip('\n').split('\t')
            if r[0] == 'const':
                self.const.append((r[1], r[2]))
            elif r[0] == 'api':
                self.api.append(r[3:6])
            elif r[0] == 'enum':
                self.enum[r[1]] = (r[3], [])
            elif r[0] == 'value':
                self.enum[r[1]][1].append((r[2], r[3]))
            elif r[0] == 'callback':
                self.callback[r[1]] = (r[3], r[2])
            elif r[0] == 'struct':
                self.struct[r[1]] = (r[4], r[2], r[3], [])
            elif r[0] == 'field':
                self.struct[r[1]][3].append(r[2:])

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
    names = set(re.findall(r'\bPJRT_\w+', text)) | set(structs)
    out.append('')
    out += ['typedef struct %s %s;' % (n, n)
            for n in sorted(names - known - functions)]
    out.append('')
    for name, (head, sig) in t.callback.items():
        if t.wanted(head):
            out.append('typedef %s;' % declare(sig, name))
    out.append('')
    returns = {name: ret for name, ret, _ in t.api}
    used = set(re.findall(r'\bPJRT_\w+', text))
    for name in sorted(functions & used):
        out.append('typedef %s %s(%s_Args *args);' %
                   (returns.get(name, 'PJRT_Error*'), name, name))
    out.append('')
    for name, (_, _, _, fields) in structs.items():
        if name not in OURS:
            out += struct_text(name, fields)
    out.append('')
    for name, (_, size, end, fields) in structs.items():
        if name in OURS:
            continue
        if end != '-':
            out.append('enum { %s_STRUCT_SIZE = %s };' % (name, end))
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
    name = name[len('PJRT_'):]
    name = re.sub(r'([a-z0-9])([A-Z])', r'\1_\2', name)
    return 'pjrt_' + name.lower()


def slots(t):
    out = ['/* Made by tools/gen_pjrt.py from abi/pjrt.tsv.  Do not edit. */',
           '#ifndef PJRT_SLOTS_H', '#define PJRT_SLOTS_H', '',
           '#include "pjrt_abi.h"', '']
    for name, ret, args in t.api:
        out.append('%s %s(%s a);' % (ret, snake(name), args))
    out += ['', '#endif']
    return out


def least(t, args):
    """The end of what every caller of this interface has."""
    return max(int(f[2]) + int(f[3]) for f in t.struct[args][3]
               if f[5] == '-')


def table(t):
    out = ['/* Made by tools/gen_pjrt.py from abi/pjrt.tsv.  Do not edit. */',
           '#include "pjrt.h"', '']
    fill = []
    for name, ret, args in t.api:
        fn, args = snake(name), args.rstrip('*')
        if ret == 'void':
            fill.append('    .%s = %s,' % (name, fn))
            continue
        out += ['__attribute__((weak)) PJRT_Error *%s(%s *a)' % (fn, args),
                '{', '    (void)a;',
                '    return pjrt_unimplemented("%s");' % name, '}',
                'static PJRT_Error *check_%s(%s *a)' % (fn, args), '{',
                '    if (a->struct_size < %d)' % least(t, args),
                '        return pjrt_short("%s", a->struct_size, %d);' %
                (name, least(t, args)),
                '    return %s(a);' % fn, '}']
        fill.append('    .%s = check_%s,' % (name, fn))
    out += ['', 'const PJRT_Api pjrt_api = {',
            '    .struct_size = PJRT_Api_STRUCT_SIZE,',
            '    .pjrt_api_version = {.struct_size = '
            'PJRT_Api_Version_STRUCT_SIZE,',
            '        .major_version = PJRT_API_MAJOR, '
            '.minor_version = PJRT_API_MINOR},']
    out += fill + ['};']
    return out


def main():
    what, tsv, to = sys.argv[1:]
    make = {'header': header, 'slots': slots, 'table': table}[what]
    with open(to, 'w') as f:
        f.write('\n'.join(make(Table(tsv))) + '\n')


main()
