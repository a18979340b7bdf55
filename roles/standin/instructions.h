/* The instructions that the stand-in knows, each in one row: name, text, operands, what it does.
 *
 * Operands, the one written first: p predicate; w and q integers of 32 and 64 bits; f and d floating point;
 * h and l anything of 32 and 64 bits; a name of a parameter; m memory; t branch target. Arithmetic that rounds
 * is known with `.rn` alone. What is done is said of r, the registers; `to`, `a`, `b`, `c` are the operands. */
#ifndef INSTRUCTIONS_H
#define INSTRUCTIONS_H

/* An order that is false where an operand is no number, `ne` too. */
#define COMPARE(X, NAME, kind, type, field)                                                                            \
    X(EQ_##NAME, "setp.eq." type, "p" kind kind, r[to].q = r[a].field == r[b].field)                                   \
    X(NE_##NAME, "setp.ne." type, "p" kind kind, r[to].q = r[a].field < r[b].field || r[a].field > r[b].field)         \
    X(LT_##NAME, "setp.lt." type, "p" kind kind, r[to].q = r[a].field < r[b].field)                                    \
    X(LE_##NAME, "setp.le." type, "p" kind kind, r[to].q = r[a].field <= r[b].field)                                   \
    X(GT_##NAME, "setp.gt." type, "p" kind kind, r[to].q = r[a].field > r[b].field)                                    \
    X(GE_##NAME, "setp.ge." type, "p" kind kind, r[to].q = r[a].field >= r[b].field)

/* Wrapping arithmetic is the same with a sign and without. */
#define INTEGER(X, NAME, kind, type, field)                                                                            \
    X(ADD_##NAME, "add." type, kind kind kind, r[to].field = r[a].field + r[b].field)                                  \
    X(SUB_##NAME, "sub." type, kind kind kind, r[to].field = r[a].field - r[b].field)                                  \
    X(MUL_##NAME, "mul.lo." type, kind kind kind, r[to].field = r[a].field * r[b].field)                               \
    X(MAD_##NAME, "mad.lo." type, kind kind kind kind, r[to].field = r[a].field * r[b].field + r[c].field)

#define MEMORY(X, NAME, kind, type, size)                                                                              \
    X(LD_##NAME, "ld.global." type, kind "m", LOAD(size))                                                              \
    X(ST_##NAME, "st.global." type, "m" kind, STORE(size))

#define ROUNDED(X, NAME, kind, type, field, root)                                                                      \
    X(ADD_##NAME, "add.rn." type, kind kind kind, r[to].field = r[a].field + r[b].field)                               \
    X(SUB_##NAME, "sub.rn." type, kind kind kind, r[to].field = r[a].field - r[b].field)                               \
    X(MUL_##NAME, "mul.rn." type, kind kind kind, r[to].field = r[a].field * r[b].field)                               \
    X(DIV_##NAME, "div.rn." type, kind kind kind, r[to].field = r[a].field / r[b].field)                               \
    X(SQRT_##NAME, "sqrt.rn." type, kind kind, r[to].field = root(r[a].field))                                         \
    X(NEG_##NAME, "neg." type, kind kind, r[to].field = -r[a].field)

#define INSTRUCTIONS(X)                                                                                                \
    X(LD_PARAM, "ld.param.u64", "qa", r[to].q = launch->parameters[at])                                                \
    X(MOV_U32, "mov.u32", "ww", r[to].w = r[a].w)                                                                      \
    X(MOV_S32, "mov.s32", "ww", r[to].w = r[a].w)                                                                      \
    X(MOV_B32, "mov.b32", "hh", r[to].w = r[a].w)                                                                      \
    X(MOV_F32, "mov.f32", "ff", r[to].w = r[a].w)                                                                      \
    X(MOV_U64, "mov.u64", "qq", r[to].q = r[a].q)                                                                      \
    X(MOV_S64, "mov.s64", "qq", r[to].q = r[a].q)                                                                      \
    X(MOV_B64, "mov.b64", "ll", r[to].q = r[a].q)                                                                      \
    X(MOV_F64, "mov.f64", "dd", r[to].q = r[a].q)                                                                      \
    X(CVT_Q_W, "cvt.u64.u32", "qw", r[to].q = r[a].w)                                                                  \
    X(WIDE, "mul.wide.u32", "qww", r[to].q = (uint64_t)r[a].w * r[b].w)                                                \
    INTEGER(X, U32, "w", "u32", w)                                                                                     \
    INTEGER(X, S32, "w", "s32", w)                                                                                     \
    INTEGER(X, U64, "q", "u64", q)                                                                                     \
    INTEGER(X, S64, "q", "s64", q)                                                                                     \
    ROUNDED(X, F32, "f", "f32", f, __builtin_sqrtf)                                                                    \
    ROUNDED(X, F64, "d", "f64", d, __builtin_sqrt)                                                                     \
    COMPARE(X, U32, "w", "u32", w)                                                                                     \
    COMPARE(X, S32, "w", "s32", i)                                                                                     \
    COMPARE(X, U64, "q", "u64", q)                                                                                     \
    COMPARE(X, S64, "q", "s64", s)                                                                                     \
    COMPARE(X, F32, "f", "f32", f)                                                                                     \
    COMPARE(X, F64, "d", "f64", d)                                                                                     \
    MEMORY(X, U32, "w", "u32", 4)                                                                                      \
    MEMORY(X, U64, "q", "u64", 8)                                                                                      \
    MEMORY(X, F32, "f", "f32", 4)                                                                                      \
    MEMORY(X, F64, "d", "f64", 8)                                                                                      \
    X(BRA, "bra", "t", BRANCH)                                                                                         \
    X(RET, "ret", "", return LAUNCH_DONE)

#define NAME_OF(name, text, kinds, what) name,

/* And two that stand before an instruction under a guard: the next one is left out. */
enum code { INSTRUCTIONS(NAME_OF) SKIP_IF, SKIP_UNLESS };

#endif
