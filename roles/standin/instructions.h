/* The instructions that the stand-in knows, each in one row: name, text, operands, what it does. They are those
 * that orch renders (docs/kernels.md), and no more: arithmetic on words is known with `.rn` alone.
 *
 * Operands, the one written first: p predicate; w and q integers of 32 and 64 bits; f and d floating point; a
 * name of a parameter; m memory; t branch target. What is done is said of r, the registers; `to`, `a`, `b`, `c`
 * are the operands. */
#ifndef INSTRUCTIONS_H
#define INSTRUCTIONS_H

#define ON_WORDS(X, NAME, kind, type, field, size, root)                                                               \
    X(LD_##NAME, "ld.global." type, kind "m", LOAD(size))                                                              \
    X(ST_##NAME, "st.global." type, "m" kind, STORE(size))                                                             \
    X(MOV_##NAME, "mov." type, kind kind, r[to] = r[a])                                                                \
    X(NEG_##NAME, "neg." type, kind kind, r[to].field = -r[a].field)                                                   \
    X(SQRT_##NAME, "sqrt.rn." type, kind kind, r[to].field = root(r[a].field))                                         \
    X(ADD_##NAME, "add.rn." type, kind kind kind, r[to].field = r[a].field + r[b].field)                               \
    X(SUB_##NAME, "sub.rn." type, kind kind kind, r[to].field = r[a].field - r[b].field)                               \
    X(MUL_##NAME, "mul.rn." type, kind kind kind, r[to].field = r[a].field * r[b].field)                               \
    X(DIV_##NAME, "div.rn." type, kind kind kind, r[to].field = r[a].field / r[b].field)

#define INSTRUCTIONS(X)                                                                                                \
    X(LD_PARAM, "ld.param.u64", "qa", r[to].q = launch->parameters[at])                                                \
    X(MOV_U32, "mov.u32", "ww", r[to] = r[a])                                                                          \
    X(ADD_U32, "add.u32", "www", r[to].w = r[a].w + r[b].w)                                                            \
    X(MAD_LO, "mad.lo.u32", "wwww", r[to].w = r[a].w * r[b].w + r[c].w)                                                \
    X(MAD_WIDE, "mad.wide.u32", "qwwq", r[to].q = (uint64_t)r[a].w * r[b].w + r[c].q)                                  \
    X(ADD_U64, "add.u64", "qqq", r[to].q = r[a].q + r[b].q)                                                            \
    X(SETP_LT, "setp.lt.u32", "pww", r[to].q = r[a].w < r[b].w)                                                        \
    X(SETP_GE, "setp.ge.u32", "pww", r[to].q = r[a].w >= r[b].w)                                                       \
    ON_WORDS(X, F32, "f", "f32", f, 4, __builtin_sqrtf)                                                                \
    ON_WORDS(X, F64, "d", "f64", d, 8, __builtin_sqrt)                                                                 \
    X(BRA, "bra", "t", BRANCH)                                                                                         \
    X(RET, "ret", "", return LAUNCH_DONE)

#define NAME_OF(name, text, kinds, what) name,

/* And one that stands before an instruction under a guard: the next one is left out. */
enum code { INSTRUCTIONS(NAME_OF) SKIP_UNLESS };

#endif
