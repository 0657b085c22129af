#!/usr/bin/env python3
"""A header from the foreign function interface kept in abi/ffi.tsv.

    gen_ffi.py ffi.tsv OUT.h

Every offset and size is asserted; the text is our own."""
import re
import sys


def declare(ctype, name):
    """'void (*)(int)' and 'f' give 'void (*f)(int)'."""
    if '(*)' in ctype:
        return ctype.replace('(*)', '(*%s)' % name, 1)
    return '%s %s' % (ctype, name)


def read(path):
    const, api, enum, struct = [], [], {}, {}
    for line in open(path):
        r = line.rstrip('\n').split('\t')
        if r[0] == 'const':
            const.append((r[1], r[2]))
        elif r[0] == 'api':
            api.append(r[3:6])
        elif r[0] == 'enum':
            enum[r[1]] = []
        elif r[0] == 'value':
            enum[r[1]].append((r[2], r[3]))
        elif r[0] == 'struct':
            struct[r[1]] = (r[2], r[3], [])
        elif r[0] == 'field':
            struct[r[1]][2].append(r[2:])
    return const, api, enum, struct


def header(const, api, enum, struct):
    functions = {name for name, *_ in api}
    out = ['/* Made by tools/gen_ffi.py from abi/ffi.tsv.  Do not edit. */',
           '#ifndef FFI_ABI_H', '#define FFI_ABI_H', '',
           '#include <stddef.h>', '#include <stdint.h>', '']
    out += ['#define %s %s' % c for c in const]
    for name, values in enum.items():
        out.append('typedef enum {')
        out += ['    %s = %s,' % v for v in values]
        out.append('} %s;' % name)
    text = ' '.join(f[1] for s in struct.values() for f in s[2])
    named = set(re.findall(r'\bXLA_FFI_\w+', text)) | set(struct)
    special = functions | set(enum) | {
        'XLA_FFI_Handler', 'XLA_FFI_Task', 'XLA_FFI_Handler_Traits'}
    out += ['typedef struct %s %s;' % (n, n) for n in sorted(named - special)]
    out += ['typedef uint32_t XLA_FFI_Handler_Traits;',
            'typedef XLA_FFI_Error *XLA_FFI_Handler(XLA_FFI_CallFrame *);',
            'typedef void XLA_FFI_Task(void *data);']
    out += ['typedef %s %s(%s args);' % (ret, name, args)
            for name, ret, args in api]
    done = set()

    def put(name):
        """What it holds by value comes first."""
        if name in done:
            return
        done.add(name)
        size, end, fields = struct[name]
        for f in fields:
            if f[1] in struct:
                put(f[1])
        out.append('struct %s {' % name)
        out.extend('    %s;' % declare(f[1], f[0]) for f in fields)
        out.append('};')
        if end != '-':
            out.append('enum { %s_STRUCT_SIZE = %s };' % (name, end))
        out.append('_Static_assert(sizeof(%s) == %s, "%s");' %
                   (name, size, name))
        out.extend('_Static_assert(offsetof(%s, %s) == %s && '
                   'sizeof(((%s *)0)->%s) == %s, "%s.%s");' %
                   (name, f[0], f[2], name, f[0], f[3], name, f[0])
                   for f in fields)

    for name in struct:
        put(name)
    return out + ['', '#endif']


def main():
    tsv, to = sys.argv[1:]
    with open(to, 'w') as f:
        f.write('\n'.join(header(*read(tsv))) + '\n')


main()
