/* Typed foreign calls: layouts become transposes, and what no handler could be
 * given is refused. */
#include "passes_priv.h"

/* ---- layouts ---- */

/* The bytes of x under a layout, as an array of x's own dimensions: a handler
 * gets these with bytes in its order.  to_layout false: back from there. */
static hlo_inst *relaid(hlo_at p, hlo_inst *x, hlo_dims layout, bool to_layout)
{
    const sd_shape *s = x->shape;
    int64_t perm[SD_MAX_RANK], back[SD_MAX_RANK], dim[SD_MAX_RANK];
    int n = s->rank;

    for (int i = 0; i < n; i++) { /* major to minor */
        perm[i] = layout.at[n - 1 - i];
        back[perm[i]] = i;
        dim[i] = s->dim[perm[i]];
    }
    if (to_layout)
        return pass_reshape(p, hlo_make_transpose(p, x, perm), n, s->dim);
    return hlo_make_transpose(p, pass_reshape(p, x, n, dim), back);
}

static hlo_inst *relay_result(hlo_at p, hlo_inst *x, const hlo_dims *layout)
{
    hlo_inst **e;
    int n = x->shape->nelem;

    if (x->shape->dtype != SD_TUPLE)
        return hlo_is_row_major(*layout) ? x : relaid(p, x, *layout, false);
    e = sd_arena_array(x->parent->module->arena, hlo_inst *, n + 1);
    for (int i = 0; i < n; i++) {
        e[i] = hlo_make_gte(p, x, i);
        if (!hlo_is_row_major(layout[i]))
            e[i] = relaid(p, e[i], layout[i], false);
    }
    return hlo_make_tuple(p, n, e);
}

hlo_inst *pass_foreign_row_major(hlo_inst *in)
{
    const hlo_custom *u = in->u.custom;
    hlo_custom *plain;
    hlo_at p = pass_at(in);
    hlo_inst **arg, *call;

    if (u->api_version != HLO_TYPED_FFI ||
        (!u->operand_layout && !u->result_layout))
        return NULL;
    arg = sd_arena_array(in->parent->module->arena, hlo_inst *, in->narg + 1);
    for (int i = 0; i < in->narg; i++)
        arg[i] = u->operand_layout && !hlo_is_row_major(u->operand_layout[i])
                     ? relaid(p, in->arg[i], u->operand_layout[i], true)
                     : in->arg[i];
    call = hlo_inst_clone(in->parent, in, in, arg);
    call->u.custom = plain =
        sd_arena_copy(in->parent->module->arena, u, sizeof *u);
    plain->operand_layout = plain->result_layout = NULL;
    return u->result_layout ? relay_result(p, call, u->result_layout) : call;
}

/* ---- what is refused ---- */

static int64_t out_of(const hlo_dims *index)
{
    return index->n ? index->at[0] : 0;
}

static const sd_shape *result_at(const hlo_inst *in, hlo_dims index)
{
    const sd_shape *s = in->shape;

    if (s->dtype != SD_TUPLE)
        return index.n == 0 ? s : NULL;
    return index.n == 1 && index.at[0] >= 0 && index.at[0] < s->nelem
               ? s->elem[index.at[0]]
               : NULL;
}

/* Each result over one operand of its type, each operand once. */
static const char *wrong_alias(const hlo_inst *in)
{
    const hlo_custom *u = in->u.custom;

    for (int i = 0; i < u->nalias; i++) {
        int64_t k = u->alias[i].operand;
        const sd_shape *s = result_at(in, u->alias[i].out_index);

        if (!s || k < 0 || k >= in->narg || u->alias[i].operand_index.n ||
            !sd_shape_equal(s, in->arg[k]->shape))
            return "a result aliases an operand of another type";
        for (int j = 0; j < i; j++)
            if (u->alias[j].operand == k || out_of(&u->alias[j].out_index) ==
                                                out_of(&u->alias[i].out_index))
                return "two results alias one operand, or one result two";
    }
    return NULL;
}

/* Bytes that a handler reads are ours: of a byte or more an element. */
static bool is_foreign_type(const sd_shape *s)
{
    return s->dtype == SD_TOKEN || sd_dtype_table[s->dtype].bits >= 8 ||
           s->dtype == SD_PRED;
}

/* Calls that carry a kernel, compiled for a machine that is none of ours. */
static const char *foreign_kernel(const char *target)
{
    static const struct {
        const char *prefix, *what;
    } table[] = {
        {"tpu_custom_call", "a Mosaic kernel for TPUs: "},
        {"mosaic_gpu", "a Mosaic kernel for NVIDIA GPUs: "},
        {"triton_kernel_call", "a Triton kernel: "},
        {"__gpu$xla.gpu.triton", "a Triton kernel: "},
    };

    for (size_t i = 0; i < SD_COUNTOF(table); i++)
        if (strncmp(target, table[i].prefix, strlen(table[i].prefix)) == 0)
            return table[i].what;
    return NULL;
}

bool pass_has_attend_kernel(const hlo_inst *in, const device_desc *dev)
{
    hlo_attend a;

    if (!hlo_attend_has_kernel(in) || !hlo_attend_read(in, &a))
        return false;
    if (hlo_attend_is_turned(&a))
        return pass_gathers_attention(dev) && hlo_attend_is_gathered(&a);
    return dev->features & DEVICE_HAS_WGMMA ||
           (pass_attends_matrices(dev) && hlo_attend_is_matrices(&a));
}

bool pass_has_places_kernel(const hlo_inst *in, const device_desc *dev)
{
    return dev->features & DEVICE_HAS_WGMMA &&
           hlo_places_has_kernel(in, dev->local_most);
}

const char *pass_foreign_why_not(const hlo_inst *in, const device_desc *dev)
{
    const hlo_custom *u = in->u.custom;
    const sd_shape *s = in->shape;
    const char *kernel = foreign_kernel(u->target);

    if (kernel)
        return sd_arena_fmt(in->parent->module->arena,
                            "%sno device of ours runs it; of Pallas, "
                            "pallas_call(..., interpret=True) does",
                            kernel);
    if (hlo_attend_is_named(in) && !pass_has_attend_kernel(in, dev))
        return "attention of another device or of what kernels do not take: "
               "compile the program that it was made of for this device";
    if (hlo_places_is_named(in) && !pass_has_places_kernel(in, dev))
        return "a window's gradient of another device or of what kernels do "
               "not take: compile the program that it was made of for this "
               "device";
    if (u->api_version != HLO_TYPED_FFI)
        return "of an untyped API version: only typed FFI (4) is called";
    if (device_custom_of_name(u->target) &&
        !device_has_custom(dev->kind, u->target))
        return "a kernel by source, which no driver compiles for this device: "
               "it runs on cl and cuda";
    for (int i = 0; i < in->narg; i++)
        if (in->arg[i]->shape->dtype == SD_TUPLE ||
            !is_foreign_type(in->arg[i]->shape))
            return "an operand is a tuple or of less than a byte";
    for (int i = 0; i < s->nelem; i++)
        if (s->elem[i]->dtype == SD_TUPLE || !is_foreign_type(s->elem[i]))
            return "a result is a tuple or of less than a byte";
    if (s->dtype != SD_TUPLE && !is_foreign_type(s))
        return "a result is of less than a byte";
    return wrong_alias(in);
}
