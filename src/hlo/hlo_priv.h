/* What the files of hlo share and nobody else needs. */
#ifndef HLO_PRIV_H
#define HLO_PRIV_H

#include "hlo.h"

/* hlo_inst_create with a name, as text gives it: "x.3" stays "x.3" unless it is
 * taken. */
hlo_inst *hlo_inst_create_named(hlo_comp *c, hlo_inst *before, hlo_op op,
                                const char *name, const sd_shape *shape,
                                int narg, hlo_inst *const *arg);
/* Enters a parameter in its computation's list at its index. */
void hlo_comp_put_param(hlo_comp *c, hlo_inst *in);
/* Old HLO has all starts of a dynamic-slice or dynamic-update-slice in one
 * array.  Makes *arg its operands in the new form, with one scalar for each
 * dimension, and returns how many; other instructions keep theirs. 
 * hlo_form.c */
int hlo_new_operands(hlo_comp *c, hlo_op op, const char *name, int n,
                     hlo_inst ***arg);
/* How many replicas, partitions or both a collective's groups name members of,
 * and how many members a group has. */
int64_t hlo_group_names(const hlo_module *m, hlo_op op,
                        const hlo_collective *c);
int64_t hlo_group_size(const hlo_module *m, hlo_op op, const hlo_collective *c);
/* Aliases and donors against the entry's parameters and results. */
sd_status hlo_check_entry(const hlo_module *m, hlo_dims donors);

#endif
