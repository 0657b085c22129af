/* Which access takes the address of which before it: target_near.c. */
#include <llvm-c/IRReader.h>
#include <stdio.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "target_room.h"

enum { MOST = 8, ALONE = -1 };

/* Loads and stores in the order of the text: each has an address of its own, or
 * lies so many bytes behind an earlier one. */
typedef struct {
    const char *title, *body;
    struct {
        int from;
        long long bytes;
    } want[MOST];
    int n;
} near_case;

static const near_case cases[] = {
    {"turns of an unrolled loop",
     "  %a = mul nsw i32 %i, 64\n"
     "  %b = add nsw i32 %j, %a\n"
     "  %p = getelementptr float, ptr addrspace(1) %x, i32 %b\n"
     "  %u = load float, ptr addrspace(1) %p\n"
     "  %c = add nsw i32 %i, 8\n"
     "  %d = mul nsw i32 %c, 64\n"
     "  %e = add nsw i32 %j, %d\n"
     "  %q = getelementptr float, ptr addrspace(1) %x, i32 %e\n"
     "  %v = load float, ptr addrspace(1) %q\n"
     "  %f = sub nsw i32 %i, 1\n"
     "  %g = shl nsw i32 %f, 6\n"
     "  %h = add nsw i32 %g, %j\n"
     "  %r = getelementptr float, ptr addrspace(1) %x, i32 %h\n"
     "  store float 1.0, ptr addrspace(1) %r\n"
     "  ret void\n",
     {{ALONE, 0}, {0, 2048}, {0, -256}},
     3},
    {"the same address twice",
     "  %p = getelementptr float, ptr addrspace(1) %x, i32 %i\n"
     "  %u = load float, ptr addrspace(1) %p\n"
     "  %a = sext i32 %i to i64\n"
     "  %b = shl i64 %a, 2\n"
     "  %q = getelementptr i8, ptr addrspace(1) %x, i64 %b\n"
     "  %v = load float, ptr addrspace(1) %q\n"
     "  ret void\n",
     {{ALONE, 0}, {0, 0}},
     2},
    {"a sum that may wrap",
     "  %p = getelementptr float, ptr addrspace(1) %x, i32 %i\n"
     "  %u = load float, ptr addrspace(1) %p\n"
     "  %a = add i32 %i, 1\n"
     "  %q = getelementptr float, ptr addrspace(1) %x, i32 %a\n"
     "  %v = load float, ptr addrspace(1) %q\n"
     "  %b = or i32 %i, 1\n"
     "  %r = getelementptr float, ptr addrspace(1) %x, i32 %b\n"
     "  %w = load float, ptr addrspace(1) %r\n"
     "  %c = or disjoint i32 %i, 2\n"
     "  %s = getelementptr float, ptr addrspace(1) %x, i32 %c\n"
     "  %g = load float, ptr addrspace(1) %s\n"
     "  %d = mul i32 %i, 1\n"
     "  %t = getelementptr float, ptr addrspace(1) %x, i32 %d\n"
     "  %z = load float, ptr addrspace(1) %t\n"
     "  ret void\n",
     {{ALONE, 0}, {ALONE, 0}, {ALONE, 0}, {0, 8}, {ALONE, 0}},
     5},
    {"64 bits wrap as addresses do",
     "  %a = zext i32 %i to i64\n"
     "  %p = getelementptr float, ptr addrspace(1) %x, i64 %a\n"
     "  %u = load float, ptr addrspace(1) %p\n"
     "  %b = add i64 %a, 3\n"
     "  %q = getelementptr float, ptr addrspace(1) %x, i64 %b\n"
     "  %v = load float, ptr addrspace(1) %q\n"
     "  %c = sext i32 %i to i64\n"
     "  %r = getelementptr float, ptr addrspace(1) %x, i64 %c\n"
     "  %w = load float, ptr addrspace(1) %r\n"
     "  ret void\n",
     {{ALONE, 0}, {0, 12}, {ALONE, 0}},
     3},
    {"not on every way",
     "  %t = icmp slt i32 %i, %j\n"
     "  br i1 %t, label %yes, label %no\n"
     "yes:\n"
     "  %p = getelementptr float, ptr addrspace(1) %x, i32 %i\n"
     "  %u = load float, ptr addrspace(1) %p\n"
     "  br label %after\n"
     "no:\n"
     "  br label %after\n"
     "after:\n"
     "  %a = add nsw i32 %i, 1\n"
     "  %q = getelementptr float, ptr addrspace(1) %x, i32 %a\n"
     "  %v = load float, ptr addrspace(1) %q\n"
     "  br label %loop\n"
     "loop:\n"
     "  %k = phi i32 [ 0, %after ], [ %l, %loop ]\n"
     "  %b = add nsw i32 %i, 2\n"
     "  %r = getelementptr float, ptr addrspace(1) %x, i32 %b\n"
     "  %w = load float, ptr addrspace(1) %r\n"
     "  %s = getelementptr float, ptr addrspace(1) %x, i32 %k\n"
     "  store float %w, ptr addrspace(1) %s\n"
     "  %l = add nsw i32 %k, 1\n"
     "  %o = icmp slt i32 %l, %j\n"
     "  br i1 %o, label %loop, label %end\n"
     "end:\n"
     "  ret void\n"
     "dead:\n"
     "  br label %end\n",
     {{ALONE, 0}, {ALONE, 0}, {1, 4}, {ALONE, 0}},
     4},
    {"far away, and another array",
     "  %p = getelementptr float, ptr addrspace(1) %x, i32 %i\n"
     "  %u = load float, ptr addrspace(1) %p\n"
     "  %a = add nsw i32 %i, 2000000\n"
     "  %q = getelementptr float, ptr addrspace(1) %x, i32 %a\n"
     "  %v = load float, ptr addrspace(1) %q\n"
     "  %b = add nsw i32 %i, 2000001\n"
     "  %r = getelementptr float, ptr addrspace(1) %x, i32 %b\n"
     "  %w = load float, ptr addrspace(1) %r\n"
     "  %s = getelementptr float, ptr addrspace(1) %y, i32 %b\n"
     "  store float %w, ptr addrspace(1) %s\n"
     "  ret void\n",
     {{ALONE, 0}, {0, 8000000}, {1, 4}, {ALONE, 0}},
     4},
    {"twice as often is another sum",
     "  %p = getelementptr float, ptr addrspace(1) %x, i32 %i\n"
     "  %u = load float, ptr addrspace(1) %p\n"
     "  %a = add nsw i32 %i, %i\n"
     "  %q = getelementptr float, ptr addrspace(1) %x, i32 %a\n"
     "  %v = load float, ptr addrspace(1) %q\n"
     "  %r = getelementptr float, ptr addrspace(1) %p, i32 %i\n"
     "  %w = load float, ptr addrspace(1) %r\n"
     "  ret void\n",
     {{ALONE, 0}, {ALONE, 0}, {1, 0}},
     3},
};

static LLVMModuleRef parse(LLVMContextRef cx, const char *body)
{
    char text[4096], *message = NULL;
    LLVMModuleRef m = NULL;
    int n = snprintf(text, sizeof text,
                     "define void @f(ptr addrspace(1) %%x, ptr addrspace(1) "
                     "%%y, i32 %%i, i32 %%j) {\nentry:\n%s}\n",
                     body);

    assert_in_range(n, 1, sizeof text - 1);
    if (LLVMParseIRInContext(
            cx,
            LLVMCreateMemoryBufferWithMemoryRangeCopy(text, (size_t)n, "near"),
            &m, &message))
        fail_msg("%s", message);
    return m;
}

/* The addresses of loads and stores. */
static int take_addresses(LLVMModuleRef m, LLVMValueRef *at)
{
    int n = 0;

    for (LLVMBasicBlockRef bb =
             LLVMGetFirstBasicBlock(LLVMGetNamedFunction(m, "f"));
         bb; bb = LLVMGetNextBasicBlock(bb))
        for (LLVMValueRef in = LLVMGetFirstInstruction(bb); in;
             in = LLVMGetNextInstruction(in)) {
            bool store = LLVMIsAStoreInst(in);

            if (store || LLVMIsALoadInst(in)) {
                assert_true(n < MOST);
                at[n++] = LLVMGetOperand(in, store);
            }
        }
    return n;
}

static void check(const near_case *c)
{
    LLVMContextRef cx = LLVMContextCreate();
    LLVMModuleRef m = parse(cx, c->body);
    LLVMValueRef was[MOST], is[MOST];
    int n = take_addresses(m, was);

    target_near(m, cx);
    assert_int_equal(take_addresses(m, is), n);
    assert_int_equal(n, c->n);
    for (int i = 0; i < n; i++) {
        int from = c->want[i].from;

        print_message("%s, %d\n", c->title, i);
        if (from == ALONE) {
            assert_ptr_equal(is[i], was[i]);
        } else if (!c->want[i].bytes) {
            assert_ptr_equal(is[i], is[from]);
        } else {
            assert_ptr_not_equal(is[i], was[i]);
            assert_ptr_equal(LLVMGetOperand(is[i], 0), is[from]);
            assert_int_equal(LLVMConstIntGetSExtValue(LLVMGetOperand(is[i], 1)),
                             c->want[i].bytes);
        }
    }
    LLVMDisposeModule(m);
    LLVMContextDispose(cx);
}

static void addresses_are_lent(void **state)
{
    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(cases); i++)
        check(&cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(addresses_are_lent)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
