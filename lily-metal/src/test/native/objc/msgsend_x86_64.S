/*
 * Apple's entry point, which the GNU runtime lacks: looks the method up, then jumps to it with every argument register
 * and the stack as they came. Serves words, doubles, structs by value and every result that returns in registers.
 */
    .text
    .globl objc_msgSend
    .type objc_msgSend, @function
objc_msgSend:
    testq %rdi, %rdi
    jz 1f
    pushq %rbp
    movq %rsp, %rbp
    subq $192, %rsp
    movq %rdi, (%rsp)
    movq %rsi, 8(%rsp)
    movq %rdx, 16(%rsp)
    movq %rcx, 24(%rsp)
    movq %r8, 32(%rsp)
    movq %r9, 40(%rsp)
    movups %xmm0, 64(%rsp)
    movups %xmm1, 80(%rsp)
    movups %xmm2, 96(%rsp)
    movups %xmm3, 112(%rsp)
    movups %xmm4, 128(%rsp)
    movups %xmm5, 144(%rsp)
    movups %xmm6, 160(%rsp)
    movups %xmm7, 176(%rsp)
    call find_method@PLT
    movq %rax, %r11
    movq (%rsp), %rdi
    movq 8(%rsp), %rsi
    movq 16(%rsp), %rdx
    movq 24(%rsp), %rcx
    movq 32(%rsp), %r8
    movq 40(%rsp), %r9
    movups 64(%rsp), %xmm0
    movups 80(%rsp), %xmm1
    movups 96(%rsp), %xmm2
    movups 112(%rsp), %xmm3
    movups 128(%rsp), %xmm4
    movups 144(%rsp), %xmm5
    movups 160(%rsp), %xmm6
    movups 176(%rsp), %xmm7
    leave
    jmp *%r11
1:  xorl %eax, %eax
    xorps %xmm0, %xmm0
    ret
    .size objc_msgSend, .-objc_msgSend
    .section .note.GNU-stack, "", @progbits
