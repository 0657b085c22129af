	.file	"heads"
	.text
	.globl	wrapped_broadcast
	.p2align	4
	.type	wrapped_broadcast,@function
wrapped_broadcast:
	shlq	$15, %rdx
	shlq	$15, %rsi
	cmpq	%rdx, %rsi
	jge	.LBB0_3
	movq	(%rdi), %rax
	vxorps	%xmm0, %xmm0, %xmm0
	.p2align	4
.LBB0_2:
	vmovups	%ymm0, (%rax,%rsi,4)
	vmovups	%ymm0, 32(%rax,%rsi,4)
	addq	$16, %rsi
	cmpq	%rdx, %rsi
	jl	.LBB0_2
.LBB0_3:
	vzeroupper
	retq
.Lfunc_end0:
	.size	wrapped_broadcast, .Lfunc_end0-wrapped_broadcast

	.globl	wrapped_compare
	.p2align	4
	.type	wrapped_compare,@function
wrapped_compare:
	movq	(%rdi), %rax
	cmpl	$3, (%rax)
	movq	8(%rdi), %rax
	setl	(%rax)
	retq
.Lfunc_end1:
	.size	wrapped_compare, .Lfunc_end1-wrapped_compare

	.globl	fusion_5
	.p2align	4
	.type	fusion_5,@function
fusion_5:
	movq	(%rdi), %rax
	shlq	$14, %rdx
	movl	(%rax), %eax
	shll	$2, %eax
	movl	%eax, %ecx
	sarl	$31, %ecx
	andnl	%eax, %ecx, %ecx
	cmpl	$8, %ecx
	movl	$8, %eax
	cmovll	%ecx, %eax
	shlq	$14, %rsi
	cmpq	%rdx, %rsi
	jge	.LBB2_3
	movq	16(%rdi), %rcx
	shll	$17, %eax
	addq	8(%rdi), %rax
	.p2align	4
.LBB2_2:
	vmovups	(%rax,%rsi,4), %ymm0
	vmovups	%ymm0, (%rcx,%rsi,4)
	addq	$8, %rsi
	cmpq	%rdx, %rsi
	jl	.LBB2_2
.LBB2_3:
	vzeroupper
	retq
.Lfunc_end2:
	.size	fusion_5, .Lfunc_end2-fusion_5

	.section	.rodata.cst4,"aM",@progbits,4
	.p2align	2, 0x0
.LCPI3_0:
	.long	0xff800000
.LCPI3_2:
	.long	0x80000000
.LCPI3_3:
	.long	0xc2d10000
.LCPI3_4:
	.long	0x3fb8aa3b
.LCPI3_5:
	.long	0xcb400000
.LCPI3_6:
	.long	0xbf317218
.LCPI3_7:
	.long	0x3102e308
.LCPI3_8:
	.long	0x3c091fa7
.LCPI3_9:
	.long	0x3ab56b8c
.LCPI3_10:
	.long	0x3d2aac26
.LCPI3_11:
	.long	0x3e2aaa45
.LCPI3_12:
	.long	0x3efffffe
.LCPI3_13:
	.long	0x33800000
.LCPI3_14:
	.long	0x5e800000
	.section	.rodata.cst32,"aM",@progbits,32
	.p2align	5, 0x0
.LCPI3_1:
	.long	0
	.long	1
	.long	2
	.long	3
	.long	4
	.long	5
	.long	6
	.long	7
	.text
	.globl	fusion_3
	.p2align	4
	.type	fusion_3,@function
fusion_3:
	pushq	%rbp
	movq	%rsp, %rbp
	pushq	%r15
	pushq	%r14
	pushq	%r13
	pushq	%r12
	pushq	%rbx
	andq	$-32, %rsp
	subq	$320, %rsp
	movq	%rdx, 16(%rsp)
	cmpq	%rdx, %rsi
	jge	.LBB3_13
	movq	(%rdi), %rax
	movq	%rax, 8(%rsp)
	movq	8(%rdi), %rdi
	vbroadcastss	.LCPI3_0(%rip), %ymm10
	vmovdqa	.LCPI3_1(%rip), %ymm2
	vbroadcastss	.LCPI3_9(%rip), %ymm11
	vbroadcastss	.LCPI3_0(%rip), %ymm6
	.p2align	4
.LBB3_2:
	movl	%esi, %r8d
	andl	$7, %r8d
	movq	%rsi, 24(%rsp)
	movq	%rsi, %r9
	shrl	$3, %r9d
	shll	$6, %r8d
	leaq	64(%r8), %r10
	andl	$3, %r9d
	movq	%r9, %r11
	movq	8(%rsp), %rsi
	.p2align	4
.LBB3_3:
	movq	%r11, %rbx
	shlq	$20, %rbx
	leaq	(%rsi,%rbx), %r14
	addq	%rdi, %rbx
	movq	%r8, %r15
	.p2align	4
.LBB3_4:
	movq	%r15, %r12
	shlq	$9, %r12
	movq	%r15, %r13
	shlq	$11, %r13
	addq	%r14, %r13
	vmovd	%r15d, %xmm0
	vpbroadcastd	%xmm0, %ymm15
	vmovaps	%ymm10, %ymm8
	vmovaps	%ymm10, %ymm4
	vmovaps	%ymm10, %ymm3
	vmovaps	%ymm10, %ymm1
	vmovaps	%ymm10, %ymm5
	vmovaps	%ymm10, %ymm9
	vmovaps	%ymm10, %ymm7
	vmovaps	%ymm10, %ymm0
	xorl	%eax, %eax
	.p2align	4
.LBB3_5:
	vmovups	(%r13,%rax,4), %ymm12
	vblendvps	%ymm8, %ymm12, %ymm8, %ymm13
	vblendvps	%ymm8, %ymm8, %ymm12, %ymm12
	vmaxps	%ymm13, %ymm12, %ymm13
	vcmpunordps	%ymm12, %ymm12, %ymm14
	vblendvps	%ymm14, %ymm12, %ymm13, %ymm12
	vmovd	%eax, %xmm13
	vpbroadcastd	%xmm13, %ymm13
	vpor	%ymm2, %ymm13, %ymm13
	movl	%eax, %edx
	vpcmpgtd	%ymm15, %ymm13, %ymm13
	vmovups	32(%r13,%rax,4), %ymm14
	vblendvps	%ymm13, %ymm8, %ymm12, %ymm8
	vblendvps	%ymm4, %ymm14, %ymm4, %ymm12
	orl	$8, %edx
	vblendvps	%ymm4, %ymm4, %ymm14, %ymm13
	vmaxps	%ymm12, %ymm13, %ymm12
	vcmpunordps	%ymm13, %ymm13, %ymm14
	vblendvps	%ymm14, %ymm13, %ymm12, %ymm12
	vmovd	%edx, %xmm13
	vpbroadcastd	%xmm13, %ymm13
	vpor	%ymm2, %ymm13, %ymm13
	movl	%eax, %edx
	vpcmpgtd	%ymm15, %ymm13, %ymm13
	vmovups	64(%r13,%rax,4), %ymm14
	vblendvps	%ymm13, %ymm4, %ymm12, %ymm4
	vblendvps	%ymm3, %ymm14, %ymm3, %ymm12
	orl	$16, %edx
	vblendvps	%ymm3, %ymm3, %ymm14, %ymm13
	vmaxps	%ymm12, %ymm13, %ymm12
	vcmpunordps	%ymm13, %ymm13, %ymm14
	vblendvps	%ymm14, %ymm13, %ymm12, %ymm12
	vmovd	%edx, %xmm13
	vpbroadcastd	%xmm13, %ymm13
	vpor	%ymm2, %ymm13, %ymm13
	movl	%eax, %edx
	vpcmpgtd	%ymm15, %ymm13, %ymm13
	vmovups	96(%r13,%rax,4), %ymm14
	vblendvps	%ymm13, %ymm3, %ymm12, %ymm3
	vblendvps	%ymm1, %ymm14, %ymm1, %ymm12
	orl	$24, %edx
	vblendvps	%ymm1, %ymm1, %ymm14, %ymm13
	vmaxps	%ymm12, %ymm13, %ymm12
	vcmpunordps	%ymm13, %ymm13, %ymm14
	vblendvps	%ymm14, %ymm13, %ymm12, %ymm12
	vmovd	%edx, %xmm13
	vpbroadcastd	%xmm13, %ymm13
	vpor	%ymm2, %ymm13, %ymm13
	movl	%eax, %edx
	vpcmpgtd	%ymm15, %ymm13, %ymm13
	vmovups	128(%r13,%rax,4), %ymm14
	vblendvps	%ymm13, %ymm1, %ymm12, %ymm1
	vblendvps	%ymm5, %ymm14, %ymm5, %ymm12
	orl	$32, %edx
	vblendvps	%ymm5, %ymm5, %ymm14, %ymm13
	vmaxps	%ymm12, %ymm13, %ymm12
	vcmpunordps	%ymm13, %ymm13, %ymm14
	vblendvps	%ymm14, %ymm13, %ymm12, %ymm12
	vmovd	%edx, %xmm13
	vpbroadcastd	%xmm13, %ymm13
	vpor	%ymm2, %ymm13, %ymm13
	movl	%eax, %edx
	vpcmpgtd	%ymm15, %ymm13, %ymm13
	vmovups	160(%r13,%rax,4), %ymm14
	vblendvps	%ymm13, %ymm5, %ymm12, %ymm5
	vblendvps	%ymm9, %ymm14, %ymm9, %ymm12
	orl	$40, %edx
	vblendvps	%ymm9, %ymm9, %ymm14, %ymm13
	vmaxps	%ymm12, %ymm13, %ymm12
	vcmpunordps	%ymm13, %ymm13, %ymm14
	vblendvps	%ymm14, %ymm13, %ymm12, %ymm12
	vmovd	%edx, %xmm13
	vpbroadcastd	%xmm13, %ymm13
	vpor	%ymm2, %ymm13, %ymm13
	movl	%eax, %edx
	vpcmpgtd	%ymm15, %ymm13, %ymm13
	vmovups	192(%r13,%rax,4), %ymm14
	vblendvps	%ymm13, %ymm9, %ymm12, %ymm9
	vblendvps	%ymm7, %ymm14, %ymm7, %ymm12
	orl	$48, %edx
	vblendvps	%ymm7, %ymm7, %ymm14, %ymm13
	vmaxps	%ymm12, %ymm13, %ymm12
	vcmpunordps	%ymm13, %ymm13, %ymm14
	vblendvps	%ymm14, %ymm13, %ymm12, %ymm12
	vmovd	%edx, %xmm13
	vpbroadcastd	%xmm13, %ymm13
	vpor	%ymm2, %ymm13, %ymm13
	vpcmpgtd	%ymm15, %ymm13, %ymm13
	vmovups	224(%r13,%rax,4), %ymm14
	vblendvps	%ymm13, %ymm7, %ymm12, %ymm7
	vblendvps	%ymm0, %ymm14, %ymm0, %ymm12
	vblendvps	%ymm0, %ymm0, %ymm14, %ymm13
	vmaxps	%ymm12, %ymm13, %ymm12
	vcmpunordps	%ymm13, %ymm13, %ymm14
	vblendvps	%ymm14, %ymm13, %ymm12, %ymm12
	movl	%eax, %edx
	orl	$56, %edx
	vmovd	%edx, %xmm13
	vpbroadcastd	%xmm13, %ymm13
	vpor	%ymm2, %ymm13, %ymm13
	vpcmpgtd	%ymm15, %ymm13, %ymm13
	vblendvps	%ymm13, %ymm0, %ymm12, %ymm0
	cmpq	$448, %rax
	leaq	64(%rax), %rax
	jb	.LBB3_5
	vblendvps	%ymm8, %ymm5, %ymm8, %ymm12
	vblendvps	%ymm8, %ymm8, %ymm5, %ymm5
	vmaxps	%ymm12, %ymm5, %ymm8
	vcmpunordps	%ymm5, %ymm5, %ymm12
	vblendvps	%ymm12, %ymm5, %ymm8, %ymm5
	vblendvps	%ymm4, %ymm9, %ymm4, %ymm8
	vblendvps	%ymm4, %ymm4, %ymm9, %ymm4
	vmaxps	%ymm8, %ymm4, %ymm8
	vcmpunordps	%ymm4, %ymm4, %ymm9
	vblendvps	%ymm9, %ymm4, %ymm8, %ymm4
	vblendvps	%ymm3, %ymm7, %ymm3, %ymm8
	vblendvps	%ymm3, %ymm3, %ymm7, %ymm3
	vmaxps	%ymm8, %ymm3, %ymm7
	vcmpunordps	%ymm3, %ymm3, %ymm8
	vblendvps	%ymm8, %ymm3, %ymm7, %ymm3
	vblendvps	%ymm1, %ymm0, %ymm1, %ymm7
	vblendvps	%ymm1, %ymm1, %ymm0, %ymm0
	vmaxps	%ymm7, %ymm0, %ymm1
	vcmpunordps	%ymm0, %ymm0, %ymm7
	vblendvps	%ymm7, %ymm0, %ymm1, %ymm0
	vblendvps	%ymm5, %ymm3, %ymm5, %ymm1
	vblendvps	%ymm5, %ymm5, %ymm3, %ymm3
	vmaxps	%ymm1, %ymm3, %ymm1
	vcmpunordps	%ymm3, %ymm3, %ymm5
	vblendvps	%ymm5, %ymm3, %ymm1, %ymm1
	vblendvps	%ymm4, %ymm0, %ymm4, %ymm3
	vblendvps	%ymm4, %ymm4, %ymm0, %ymm0
	vmaxps	%ymm3, %ymm0, %ymm3
	vcmpunordps	%ymm0, %ymm0, %ymm4
	vblendvps	%ymm4, %ymm0, %ymm3, %ymm0
	vblendvps	%ymm1, %ymm0, %ymm1, %ymm3
	vblendvps	%ymm1, %ymm1, %ymm0, %ymm0
	vmaxps	%ymm3, %ymm0, %ymm1
	vcmpunordps	%ymm0, %ymm0, %ymm3
	vblendvps	%ymm3, %ymm0, %ymm1, %ymm0
	vextractf128	$1, %ymm0, %xmm1
	vblendvps	%xmm0, %xmm1, %xmm0, %xmm3
	vblendvps	%xmm0, %xmm0, %xmm1, %xmm0
	vmaxps	%xmm3, %xmm0, %xmm1
	vcmpunordps	%xmm0, %xmm0, %xmm3
	vblendvps	%xmm3, %xmm0, %xmm1, %xmm0
	vshufpd	$3, %xmm0, %xmm0, %xmm1
	vblendvps	%xmm0, %xmm1, %xmm0, %xmm3
	vblendvps	%xmm0, %xmm0, %xmm1, %xmm0
	vmaxps	%xmm3, %xmm0, %xmm1
	vcmpunordps	%xmm0, %xmm0, %xmm3
	vblendvps	%xmm3, %xmm0, %xmm1, %xmm0
	vshufps	$85, %xmm0, %xmm0, %xmm1
	vblendvps	%xmm0, %xmm1, %xmm0, %xmm3
	vblendvps	%xmm0, %xmm0, %xmm1, %xmm0
	vmaxps	%xmm3, %xmm0, %xmm1
	vcmpunordps	%xmm0, %xmm0, %xmm3
	vblendvps	%xmm3, %xmm0, %xmm1, %xmm0
	vbroadcastss	.LCPI3_2(%rip), %ymm1
	vmovaps	%ymm1, 32(%rsp)
	vmovaps	%ymm1, 64(%rsp)
	vmovaps	%ymm1, 96(%rsp)
	vmovaps	%ymm1, 128(%rsp)
	vmovaps	%ymm1, 160(%rsp)
	vmovaps	%ymm1, 192(%rsp)
	vmovaps	%ymm1, 224(%rsp)
	vmovaps	%ymm1, 256(%rsp)
	vbroadcastss	%xmm0, %ymm0
	xorl	%eax, %eax
	vbroadcastss	.LCPI3_7(%rip), %ymm13
	vbroadcastss	.LCPI3_8(%rip), %ymm14
	vbroadcastss	.LCPI3_10(%rip), %ymm12
	vbroadcastss	.LCPI3_5(%rip), %ymm9
	vbroadcastss	.LCPI3_11(%rip), %ymm7
	vbroadcastss	.LCPI3_12(%rip), %ymm8
	vmovdqa	%ymm2, %ymm10
	vbroadcastss	.LCPI3_13(%rip), %ymm2
	.p2align	4
.LBB3_7:
	vmovd	%eax, %xmm1
	vpbroadcastd	%xmm1, %ymm1
	vpor	%ymm1, %ymm10, %ymm1
	vpcmpgtd	%ymm15, %ymm1, %ymm1
	vmovups	(%r13,%rax,4), %ymm3
	vblendvps	%ymm1, %ymm6, %ymm3, %ymm1
	vsubps	%ymm0, %ymm1, %ymm1
	vbroadcastss	.LCPI3_3(%rip), %ymm3
	vmaxps	%ymm1, %ymm3, %ymm1
	vbroadcastss	.LCPI3_4(%rip), %ymm3
	vfmsub213ps	%ymm9, %ymm1, %ymm3
	vaddps	%ymm3, %ymm9, %ymm4
	vbroadcastss	.LCPI3_6(%rip), %ymm5
	vfmadd231ps	%ymm5, %ymm4, %ymm1
	vfmadd231ps	%ymm4, %ymm13, %ymm1
	vmovaps	%ymm11, %ymm4
	vfmadd213ps	%ymm14, %ymm1, %ymm4
	vfmadd213ps	%ymm12, %ymm1, %ymm4
	vfmadd213ps	%ymm7, %ymm1, %ymm4
	vfmadd213ps	%ymm8, %ymm1, %ymm4
	vmulps	%ymm1, %ymm1, %ymm5
	vfmadd213ps	%ymm1, %ymm4, %ymm5
	vpslld	$23, %ymm3, %ymm1
	vpaddd	.L__unnamed_1(%rip), %ymm1, %ymm1
	vfmadd213ps	%ymm1, %ymm5, %ymm1
	vmulps	%ymm2, %ymm1, %ymm1
	vmovups	%ymm1, (%rcx,%rax,4)
	movl	%eax, %edx
	andl	$56, %edx
	vaddps	32(%rsp,%rdx,4), %ymm1, %ymm1
	vmovaps	%ymm1, 32(%rsp,%rdx,4)
	cmpq	$504, %rax
	leaq	8(%rax), %rax
	jb	.LBB3_7
	vmovdqa	%ymm10, %ymm2
	vmovaps	32(%rsp), %ymm0
	vmovaps	64(%rsp), %ymm1
	vmovaps	96(%rsp), %ymm3
	vaddps	160(%rsp), %ymm0, %ymm0
	vaddps	192(%rsp), %ymm1, %ymm1
	vaddps	224(%rsp), %ymm3, %ymm3
	vmovaps	128(%rsp), %ymm4
	vaddps	%ymm3, %ymm0, %ymm0
	vaddps	256(%rsp), %ymm4, %ymm3
	vaddps	%ymm3, %ymm1, %ymm1
	vaddps	%ymm1, %ymm0, %ymm0
	vextractf128	$1, %ymm0, %xmm1
	vaddps	%xmm1, %xmm0, %xmm0
	vshufpd	$1, %xmm0, %xmm0, %xmm1
	vaddps	%xmm1, %xmm0, %xmm0
	vmovshdup	%xmm0, %xmm1
	vaddss	%xmm1, %xmm0, %xmm0
	vaddss	.LCPI3_14(%rip), %xmm0, %xmm0
	leaq	(%rbx,%r12,4), %rax
	vbroadcastss	%xmm0, %ymm0
	xorl	%r12d, %r12d
	.p2align	4
.LBB3_9:
	vmovups	(%rcx,%r12,4), %ymm1
	vdivps	%ymm0, %ymm1, %ymm1
	vmovups	%ymm1, (%rax,%r12,4)
	cmpq	$504, %r12
	leaq	8(%r12), %r12
	jb	.LBB3_9
	incq	%r15
	cmpq	%r10, %r15
	vbroadcastss	.LCPI3_0(%rip), %ymm10
	jb	.LBB3_4
	cmpq	%r9, %r11
	leaq	1(%r11), %r11
	jb	.LBB3_3
	movq	24(%rsp), %rsi
	incq	%rsi
	cmpq	16(%rsp), %rsi
	jl	.LBB3_2
.LBB3_13:
	leaq	-40(%rbp), %rsp
	popq	%rbx
	popq	%r12
	popq	%r13
	popq	%r14
	popq	%r15
	popq	%rbp
	vzeroupper
	retq
.Lfunc_end3:
	.size	fusion_3, .Lfunc_end3-fusion_3

	.globl	fusion_2
	.p2align	4
	.type	fusion_2,@function
fusion_2:
	movq	(%rdi), %rax
	shlq	$14, %rdx
	movl	(%rax), %eax
	shll	$2, %eax
	movl	%eax, %ecx
	sarl	$31, %ecx
	andnl	%eax, %ecx, %ecx
	cmpl	$8, %ecx
	movl	$8, %eax
	cmovll	%ecx, %eax
	shlq	$14, %rsi
	cmpq	%rdx, %rsi
	jge	.LBB4_3
	movq	8(%rdi), %rcx
	shll	$17, %eax
	addq	24(%rdi), %rax
	.p2align	4
.LBB4_2:
	vmovups	(%rcx,%rsi,4), %ymm0
	vmovups	%ymm0, (%rax,%rsi,4)
	addq	$8, %rsi
	cmpq	%rdx, %rsi
	jl	.LBB4_2
.LBB4_3:
	vzeroupper
	retq
.Lfunc_end4:
	.size	fusion_2, .Lfunc_end4-fusion_2

	.globl	wrapped_add
	.p2align	4
	.type	wrapped_add,@function
wrapped_add:
	movq	(%rdi), %rax
	movq	8(%rdi), %rcx
	movl	(%rax), %eax
	incl	%eax
	movl	%eax, (%rcx)
	retq
.Lfunc_end5:
	.size	wrapped_add, .Lfunc_end5-wrapped_add

	.type	.L__unnamed_1,@object
	.section	.rodata.cst32,"aM",@progbits,32
	.p2align	5, 0x0
.L__unnamed_1:
	.long	1266679808
	.long	1266679808
	.long	1266679808
	.long	1266679808
	.long	1266679808
	.long	1266679808
	.long	1266679808
	.long	1266679808
	.size	.L__unnamed_1, 32

	.section	".note.GNU-stack","",@progbits
