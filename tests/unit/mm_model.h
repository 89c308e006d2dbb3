/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random memory operations of one guest thread against an array of pages, with
 * the tables' own books checked; shared by test_pagetable and test_tlb_control.
 */
#ifndef TESTS_UNIT_MM_MODEL_H
#define TESTS_UNIT_MM_MODEL_H

#include "fake_mm.h"

typedef struct mm_model mm_model_t;

mm_model_t *model_create(unsigned ipa_bits, size_t host_page, unsigned seed);
/* So many random operations; stops the test program when something differs. */
void model_run(mm_model_t *model, unsigned operations);
/* Unmap everything, give everything back; nothing may be left. */
void model_end(mm_model_t *model);
/* Recount what the tables say. */
void model_check_books(mm_t *mm);
/* Tables handed out and not free. */
unsigned model_tables(mm_t *mm);

#endif
