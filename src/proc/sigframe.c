/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/sigframe.h"

#include <errno.h>
#include <string.h>

/* Records in sigcontext.reserved. */
#define MAGIC_FPSIMD 0x46508001U
#define MAGIC_ESR    0x45535201U
#define MAGIC_SVE    0x53564501U
#define MAGIC_EXTRA  0x45585401U

typedef struct record {
    uint32_t magic, size;
} record_t;

typedef struct record_fpsimd {
    record_t head;
    uint32_t fpsr, fpcr;
    uint8_t v[32][16];
} record_fpsimd_t;

typedef struct record_esr {
    record_t head;
    uint64_t esr;
} record_esr_t;

/* Followed by the Z, P and FFR registers when size says so. */
typedef struct record_sve {
    record_t head;
    uint16_t vl;
    uint16_t flags; /* of streaming mode, which is not there */
    uint16_t reserved[2];
} record_sve_t;

typedef struct record_extra {
    record_t head;
    uint64_t data;
    uint32_t size;
    uint32_t reserved[3];
} record_extra_t;

_Static_assert(sizeof(record_fpsimd_t) == 528, "kernel ABI");
_Static_assert(sizeof(record_sve_t) == 16, "kernel ABI");
_Static_assert(sizeof(record_extra_t) == 32, "kernel ABI");

#define TERMINATOR_SIZE 16U
/* Linux's SIGFRAME_MAXSZ. */
#define FRAME_MAX 0x40000U

/* Bytes of the three arrays behind record_sve_t, for a vector length. */
static size_t sve_z(uint64_t vl)
{
    return 32 * vl;
}

static size_t sve_p(uint64_t vl)
{
    return 16 * vl / 8;
}

static size_t sve_regs(uint64_t vl)
{
    return sve_z(vl) + sve_p(vl) + vl / 8;
}

/* V<n> is the beginning of Z<n>. */
static size_t vector_step(const fp_state_t *fp)
{
    return fp->vl ? fp->vl : 16;
}

static size_t round16(size_t n)
{
    return (n + 15) & ~(size_t) 15;
}

/* --- Building. */

static uint8_t *put_fpsimd(uint8_t *at, const fp_state_t *fp)
{
    record_fpsimd_t r = {
        .head = {MAGIC_FPSIMD, sizeof r}, .fpsr = fp->fpsr, .fpcr = fp->fpcr};

    for (size_t n = 0; n < 32; n++)
        memcpy(r.v[n], fp->z + n * vector_step(fp), 16);
    memcpy(at, &r, sizeof r);
    return at + sizeof r;
}

static uint8_t *put_esr(uint8_t *at, uint64_t esr)
{
    record_esr_t r = {.head = {MAGIC_ESR, sizeof r}, .esr = esr};

    memcpy(at, &r, sizeof r);
    return at + sizeof r;
}

/* Where there is SVE the record is there, too; without registers when they are
 * those of a system call, which do not survive it. */
static uint8_t *put_sve(uint8_t *at, const fp_state_t *fp, bool registers)
{
    size_t size =
        round16(sizeof(record_sve_t) + (registers ? sve_regs(fp->vl) : 0));
    record_sve_t r = {.head = {MAGIC_SVE, (uint32_t) size},
                      .vl = (uint16_t) fp->vl};
    uint8_t *to = at + sizeof r;

    memcpy(at, &r, sizeof r);
    if (registers) {
        memcpy(to, fp->z, sve_z(fp->vl));
        to += sve_z(fp->vl);
        memcpy(to, fp->p, sve_p(fp->vl));
        to += sve_p(fp->vl);
        memcpy(to, fp->ffr, fp->vl / 8);
    }
    return at + size;
}

_Static_assert(sizeof(record_fpsimd_t) + sizeof(record_esr_t) +
                       sizeof(record_sve_t) + 34 * FP_VL_MAX + FP_VL_MAX / 8 +
                       16 + TERMINATOR_SIZE + sizeof(record_extra_t) <=
                   SIGFRAME_RESERVED,
               "no frame needs an extra_context");

size_t sigframe_build(sigframe_t *f, const sigframe_in_t *in)
{
    const vcpu_frame_t *regs = in->regs;
    const signal_thread_t *s = in->signal;
    uint8_t *at = f->reserved;

    memset((uint8_t *) f + SIGFRAME_UC, 0, sizeof *f - SIGFRAME_UC);
    f->stack = s->stack;
    f->mask = in->mask;
    f->fault_address = s->fault_address;
    memcpy(f->x, regs->x, sizeof f->x);
    f->sp = regs->sp_el0;
    f->pc = regs->elr;
    f->pstate = regs->spsr;
    at = put_fpsimd(at, &regs->fp);
    if (s->fault_esr)
        at = put_esr(at, s->fault_esr);
    if (regs->fp.vl)
        at = put_sve(at, &regs->fp, in->sve);
    /* The terminator is all zero. */
    return (size_t) (at - (uint8_t *) f) + TERMINATOR_SIZE;
}

/* --- Taking back. Everything comes from the guest and is read once. */

typedef struct parse {
    const sigframe_reader_t *r;
    uint64_t frame;
    /* The records: where, how far. */
    uint64_t base;
    uint64_t offset, limit;
    bool in_extra;
    uint64_t vl;
    uint64_t fpsimd, sve; /* their addresses; 0: none */
} parse_t;

static int get(const parse_t *p, void *to, uint64_t addr, size_t len)
{
    return p->r->read(p->r->arg, to, addr, len);
}

/* The records go on in a block behind the frame; *moved says so. */
static int parse_extra(parse_t *p, uint64_t at, uint32_t size)
{
    record_extra_t extra;
    uint8_t end[8], zero[8] = {0};
    uint64_t next = at + size;

    if (p->in_extra || size < sizeof extra)
        return -EINVAL;
    if (get(p, &extra, at, sizeof extra))
        return -EFAULT;
    /* A terminator in the frame's own part, where old programs stop. */
    if (p->limit - p->offset - size < TERMINATOR_SIZE)
        return -EINVAL;
    if (get(p, end, next, sizeof end))
        return -EFAULT;
    next += TERMINATOR_SIZE;
    if (memcmp(end, zero, sizeof end) != 0 || extra.data % 16 ||
        extra.size % 16 || extra.data != next ||
        extra.size > p->frame + FRAME_MAX - next)
        return -EINVAL;
    p->in_extra = true;
    p->base = next;
    p->offset = 0;
    p->limit = extra.size;
    return 0;
}

/* Note where a record of registers is. */
static int parse_once(uint64_t *where, uint64_t at, uint32_t size,
                      uint32_t least)
{
    if (*where || size < least)
        return -EINVAL;
    *where = at;
    return 0;
}

/* One record. 1: it was the last. */
static int parse_record(parse_t *p)
{
    uint64_t at = p->base + p->offset;
    record_t head;
    int error = 0;

    if (p->limit - p->offset < sizeof head || p->offset % 16)
        return -EINVAL;
    if (get(p, &head, at, sizeof head))
        return -EFAULT;
    if (p->limit - p->offset < head.size)
        return -EINVAL;
    switch (head.magic) {
    case 0:
        return head.size ? -EINVAL : 1;
    case MAGIC_FPSIMD:
        error = parse_once(&p->fpsimd, at, head.size, sizeof(record_fpsimd_t));
        break;
    case MAGIC_ESR:
        break;
    case MAGIC_SVE:
        error = p->vl ? parse_once(&p->sve, at, head.size, sizeof(record_sve_t))
                      : -EINVAL;
        break;
    case MAGIC_EXTRA:
        return parse_extra(p, at, head.size);
    default:
        return -EINVAL;
    }
    if (!error && head.size < sizeof head)
        error = -EINVAL;
    p->offset += head.size;
    return error;
}

static int get_sve(const parse_t *p, fp_state_t *fp)
{
    uint64_t at = p->sve + sizeof(record_sve_t);
    record_sve_t r;

    memset(fp->z, 0, sizeof fp->z);
    memset(fp->p, 0, sizeof fp->p);
    memset(fp->ffr, 0, sizeof fp->ffr);
    if (!p->sve)
        return 0;
    if (get(p, &r, p->sve, sizeof r))
        return -EFAULT;
    if (r.flags & 1 || r.vl != fp->vl)
        return -EINVAL;
    if (r.head.size <= sizeof r)
        return 0;
    if (r.head.size < sizeof r + sve_regs(fp->vl))
        return -EINVAL;
    if (get(p, fp->z, at, sve_z(fp->vl)) ||
        get(p, fp->p, at + sve_z(fp->vl), sve_p(fp->vl)) ||
        get(p, fp->ffr, at + sve_z(fp->vl) + sve_p(fp->vl), fp->vl / 8))
        return -EFAULT;
    return 0;
}

/* The Z registers first: the V registers win where both say something. */
static int get_fp(const parse_t *p, fp_state_t *fp)
{
    record_fpsimd_t r;
    int error;

    if (!p->fpsimd)
        return -EINVAL;
    if (get(p, &r, p->fpsimd, sizeof r))
        return -EFAULT;
    if (r.head.magic != MAGIC_FPSIMD || (!p->sve && r.head.size != sizeof r))
        return -EINVAL;
    error = get_sve(p, fp);
    if (error)
        return error;
    fp->fpsr = r.fpsr;
    fp->fpcr = r.fpcr;
    for (size_t n = 0; n < 32; n++)
        memcpy(fp->z + n * vector_step(fp), r.v[n], 16);
    return 0;
}

/* PSTATE: NZCV in 31:28, TCO and DIT, SSBS, BTYPE in 12:10; DAIF in 9:6 and
 * the mode in 4:0 must be zero (EL0t, AArch64, nothing masked). */
#define PSTATE_NZCV    (0xfUL << 28)
#define PSTATE_KEPT    (PSTATE_NZCV | 3UL << 24 | 7UL << 10)
#define PSTATE_REFUSED (0xfUL << 6 | 0x1fUL)

static bool pstate_valid(uint64_t *pstate)
{
    bool valid = !(*pstate & PSTATE_REFUSED);

    *pstate &= valid ? PSTATE_KEPT : PSTATE_NZCV;
    return valid;
}

/* Words that cannot be read are zero, as in the kernel, and -EFAULT. */
static int get_words(const parse_t *p, uint64_t *to, uint64_t addr, size_t n)
{
    int error = 0;

    if (get(p, to, addr, n * sizeof *to) == 0)
        return 0;
    for (size_t i = 0; i < n; i++) {
        if (get(p, &to[i], addr + i * sizeof *to, sizeof *to)) {
            to[i] = 0;
            error = -EFAULT;
        }
    }
    return error;
}

enum sigframe_part sigframe_parse(const sigframe_reader_t *r, uint64_t addr,
                                  sigframe_out_t *out)
{
    uint64_t regs[34]; /* x0-x30, sp, pc, pstate */
    parse_t p = {
        .r = r,
        .frame = addr,
        .base = addr + offsetof(sigframe_t, reserved),
        .limit = SIGFRAME_RESERVED,
        .vl = out->fp.vl,
    };
    int done, error;

    out->has_mask =
        get(&p, &out->mask, addr + offsetof(sigframe_t, mask), 8) == 0;
    error = get_words(&p, regs, addr + offsetof(sigframe_t, x), 34);
    memcpy(out->x, regs, sizeof out->x);
    out->sp = regs[31];
    out->pc = regs[32];
    out->pstate = regs[33];
    if (!pstate_valid(&out->pstate) || error || !out->has_mask)
        return SIGFRAME_REGS;
    do
        done = parse_record(&p);
    while (done == 0);
    if (done < 0 || get_fp(&p, &out->fp))
        return SIGFRAME_REGS;
    if (get(&p, &out->stack, addr + offsetof(sigframe_t, stack),
            sizeof out->stack))
        return SIGFRAME_FP;
    return SIGFRAME_WHOLE;
}
