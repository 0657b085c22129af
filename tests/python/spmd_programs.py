"""Programs over 8 devices: shardings of arguments and results, constraints,
manual computations with each collective, pmap, control flow, what moves data.

    spmd_programs.py lower DIR       StableHLO of each, as DIR/NAME.mlir
    spmd_programs.py run DEVICE OUT  runs each on cpu or xpu; what it gave is
                                     OUT, a pickle of {name: arrays or error}
Names after these choose programs."""
import os
import pickle
import sys
from functools import partial

from environment import cpu_devices

ON_XPU = sys.argv[1:3] == ["run", "xpu"]
if ON_XPU:
    os.environ.update(SUNDOG_HOST_DEVICES="8", JAX_PLATFORMS="xpu,cpu")
else:
    os.environ.update(
        XLA_FLAGS=cpu_devices(8), JAX_PLATFORMS="cpu")
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

mesh=jax.make_mesh((4,2),('x','y'),axis_types=(AxisType.Auto,)*2)
emesh=jax.make_mesh((4,2),('x','y'),axis_types=(AxisType.Explicit,)*2)
mesh1=jax.make_mesh((8,),('d',),axis_types=(AxisType.Auto,))
S=lambda *p: NamedSharding(mesh,P(*p))
f32=jnp.float32
def sds(shape,dt=f32,sh=None): return jax.ShapeDtypeStruct(shape,dt,sharding=sh)
progs=[]
def prog(name):
    def deco(fn): progs.append((name,fn)); return fn
    return deco

@prog('jit_in_shardings')
def _():
    return jax.jit(lambda a,b:a@b, in_shardings=(S('x',None),S(None,'y'))).lower(sds((16,32)),sds((32,8)))
@prog('jit_args_sharded_out_replicated')
def _():
    return jax.jit(lambda a:(a*2).sum(0), out_shardings=S()).lower(sds((16,32),sh=S('x','y')))
@prog('wsc')
def _():
    return jax.jit(lambda a: lax.with_sharding_constraint(jnp.sin(a),S('y','x'))+1).lower(sds((16,32),sh=S('x',None)))
@prog('wsc_unconstrained')
def _():
    return jax.jit(lambda a: lax.with_sharding_constraint(jnp.sin(a),S(P.UNCONSTRAINED,'y'))+1).lower(sds((16,32),sh=S('x',None)))
@prog('two_axes_one_dim')
def _():
    return jax.jit(lambda a: a+1).lower(sds((16,32),sh=S(('x','y'),None)))
@prog('uneven_wsc')
def _():
    return jax.jit(lambda a: lax.with_sharding_constraint(a*2,S('x',None))).lower(sds((10,32)))
def mlp_init():
    return {'w1':sds((32,64)), 'b1':sds((64,)), 'w2':sds((64,16)), 'b2':sds((16,))}
def mlp(p,x):
    return jnp.tanh(x@p['w1']+p['b1'])@p['w2']+p['b2']
def step(p,x,y):
    l,g=jax.value_and_grad(lambda p: jnp.mean((mlp(p,x)-y)**2))(p)
    return l, jax.tree.map(lambda a,b:a-0.1*b,p,g)
@prog('dp_mlp_step')
def _():
    rep=NamedSharding(mesh1,P()); bat=NamedSharding(mesh1,P('d'))
    p=jax.tree.map(lambda a:sds(a.shape,sh=rep),mlp_init())
    return jax.jit(step,donate_argnums=0).lower(p,sds((64,32),sh=bat),sds((64,16),sh=bat))
@prog('fsdp_mlp_step')
def _():
    bat=NamedSharding(mesh1,P('d'))
    p=jax.tree.map(lambda a:sds(a.shape,sh=NamedSharding(mesh1,P('d'))),mlp_init())
    o=jax.tree.map(lambda a:a.sharding,p)
    return jax.jit(step,donate_argnums=0,out_shardings=(NamedSharding(mesh1,P()),o)).lower(p,sds((64,32),sh=bat),sds((64,16),sh=bat))
def attn_block(p,x):
    def ln(x): 
        m=x.mean(-1,keepdims=True); v=((x-m)**2).mean(-1,keepdims=True); return (x-m)*lax.rsqrt(v+1e-5)
    h=ln(x)
    q,k,v=[jnp.einsum('btd,dhk->bthk',h,p[n]) for n in ('q','k','v')]
    a=jax.nn.softmax(jnp.einsum('bthk,bshk->bhts',q,k)/4.0,axis=-1)
    o=jnp.einsum('bhts,bshk->bthk',a,v)
    x=x+jnp.einsum('bthk,hkd->btd',o,p['o'])
    x=lax.with_sharding_constraint(x,S('x',None,None))
    h=ln(x)
    return x+jax.nn.gelu(h@p['up'])@p['down']
def tparams():
    D,H,K,F=32,8,16,64
    return {'q':sds((D,H,K),sh=S(None,'y',None)),'k':sds((D,H,K),sh=S(None,'y',None)),'v':sds((D,H,K),sh=S(None,'y',None)),
       'o':sds((H,K,D),sh=S('y',None,None)),'up':sds((D,F),sh=S(None,'y')),'down':sds((F,D),sh=S('y',None))}
@prog('tp_transformer_fwd')
def _(): return jax.jit(attn_block).lower(tparams(),sds((8,16,32),sh=S('x',None,None)))
@prog('tp_transformer_grad')
def _(): return jax.jit(jax.grad(lambda p,x:attn_block(p,x).sum())).lower(tparams(),sds((8,16,32),sh=S('x',None,None)))

def sm(f,ins,outs,**k): return jax.shard_map(f,mesh=k.pop('mesh',mesh),in_specs=ins,out_specs=outs,**k)
@prog('sm_psum')
def _(): return jax.jit(sm(lambda a:lax.psum(a,'x'),P('x','y'),P(None,'y'))).lower(sds((16,32)))
@prog('sm_psum_both')
def _(): return jax.jit(sm(lambda a:lax.psum(a,('x','y')),P('x','y'),P())).lower(sds((16,32)))
@prog('sm_pmax')
def _(): return jax.jit(sm(lambda a:lax.pmax(a,'y'),P('x','y'),P('x'))).lower(sds((16,32)))
@prog('sm_pmean')
def _(): return jax.jit(sm(lambda a:lax.pmean(a,'y'),P('x','y'),P('x'))).lower(sds((16,32)))
@prog('sm_all_gather')
def _(): return jax.jit(sm(lambda a:lax.all_gather(a,'x',axis=0),P('x','y'),P(None,'x','y'),check_vma=False)).lower(sds((16,32)))
@prog('sm_all_gather_tiled')
def _(): return jax.jit(sm(lambda a:lax.all_gather(a,'x',axis=0,tiled=True),P('x','y'),P(None,'y'),check_vma=False)).lower(sds((16,32)))
@prog('sm_ppermute')
def _(): return jax.jit(sm(lambda a:lax.ppermute(a,'x',[(i,(i+1)%4) for i in range(4)]),P('x','y'),P('x','y'))).lower(sds((16,32)))
@prog('sm_all_to_all')
def _(): return jax.jit(sm(lambda a:lax.all_to_all(a,'x',split_axis=1,concat_axis=0,tiled=True),P('x',None),P(None,'x'))).lower(sds((16,32)))
@prog('sm_all_to_all_untiled')
def _(): return jax.jit(sm(lambda a:lax.all_to_all(a,'x',split_axis=1,concat_axis=0),P('x',None),P(None,'x'))).lower(sds((16,4)))
@prog('sm_psum_scatter')
def _(): return jax.jit(sm(lambda a:lax.psum_scatter(a,'x',scatter_dimension=0,tiled=True),P(None,'y'),P('x','y'))).lower(sds((16,32)))
@prog('sm_axis_index')
def _(): return jax.jit(sm(lambda a:a+lax.axis_index('x')*10+lax.axis_index('y')+lax.axis_index(('x','y')),P('x','y'),P('x','y'))).lower(sds((16,32)))
@prog('sm_partial_auto')
def _(): return jax.jit(sm(lambda a,b:lax.psum(a@b,'x'),(P(None,'x'),P('x',None)),P(),axis_names={'x'})).lower(sds((16,32),sh=S(None,'x')),sds((32,8),sh=S('x','y')))
@prog('sm_partial_auto_wsc')
def _():
    def f(a):
        a=lax.with_sharding_constraint(jnp.sin(a),P(None,'y')); return lax.ppermute(a,'x',[(0,1),(1,0)])
    return jax.jit(sm(f,P('x'),P('x'),axis_names={'x'})).lower(sds((16,32)))
@prog('sm_grad')
def _():
    f=sm(lambda w,a:lax.psum((a@w).sum(),('x','y')),(P(None,'y'),P('x',None)),P())
    return jax.jit(jax.grad(lambda w,a:f(w,a))).lower(sds((32,8)),sds((16,32)))
@prog('sm_nested')
def _():
    def inner(a): return lax.psum(a,'y')
    def outer(a):
        return jax.shard_map(inner,in_specs=P(None,'y'),out_specs=P(),axis_names={'y'})(a)*lax.axis_index('x')
    return jax.jit(sm(outer,P('x'),P('x'),axis_names={'x'})).lower(sds((16,32)))
@prog('sm_two_meshes')
def _():
    f=sm(lambda a:lax.psum(a,'x'),P('x','y'),P(None,'y')); g=sm(lambda a:lax.psum(a,'d'),P('d'),P(),mesh=mesh1)
    return jax.jit(lambda a:g(f(a)+0)).lower(sds((32,32)))
@prog('sm_callback_rng')
def _():
    def f(k):
        return jax.random.normal(jax.random.wrap_key_data(k[0]),(4,))[None]
    return jax.jit(sm(f,P('d'),P('d'),mesh=mesh1)).lower(sds((8,2),jnp.uint32))
@prog('pmap_psum')
def _(): return jax.pmap(lambda a:lax.psum(a,'i'),axis_name='i').lower(sds((8,16)))
@prog('pmap_train')
def _():
    def st(p,x,y):
        l,g=jax.value_and_grad(lambda p: jnp.mean((mlp(p,x)-y)**2))(p)
        g=lax.pmean(g,'i'); return lax.pmean(l,'i'), jax.tree.map(lambda a,b:a-0.1*b,p,g)
    p=jax.tree.map(lambda a:sds((8,)+a.shape),mlp_init())
    return jax.pmap(st,axis_name='i',donate_argnums=0).lower(p,sds((8,8,32)),sds((8,8,16)))
@prog('pmap_in_axes_none')
def _(): return jax.pmap(lambda a,b:a+b,in_axes=(0,None)).lower(sds((8,16)),sds((16,)))
@prog('pmap_axis_index_all_gather')
def _(): return jax.pmap(lambda a:lax.all_gather(a+lax.axis_index('i'),'i'),axis_name='i').lower(sds((8,16)))
@prog('device_put_in_jit')
def _(): return jax.jit(lambda a: jax.device_put(a*2,S(None,'x'))).lower(sds((16,32),sh=S('x',None)))
@prog('rng_sharded')
def _():
    return jax.jit(lambda k: jax.random.normal(k,(16,32)),out_shardings=S('x','y')).lower(jax.eval_shape(lambda:jax.random.key(0)))
@prog('rng_split_sharded')
def _():
    return jax.jit(lambda k: jax.vmap(lambda k:jax.random.uniform(k,(32,)))(jax.random.split(k,16)),out_shardings=S('x')).lower(jax.eval_shape(lambda:jax.random.key(0)))
@prog('rng_rbg')
def _():
    return jax.jit(lambda k: jax.random.normal(jax.random.wrap_key_data(k,impl='rbg'),(16,32)),out_shardings=S('x','y')).lower(sds((4,),jnp.uint32))
@prog('sort')
def _(): return jax.jit(lambda a: (jnp.sort(a,0),jnp.sort(a,1))).lower(sds((16,32),sh=S('x','y')))
@prog('topk_argmax')
def _(): return jax.jit(lambda a: (lax.top_k(a,4),jnp.argmax(a,0))).lower(sds((16,32),sh=S('x','y')))
@prog('gather')
def _(): return jax.jit(lambda t,i: t[i]).lower(sds((64,32),sh=S('x','y')),sds((16,),jnp.int32,S('x')))
@prog('scatter')
def _(): return jax.jit(lambda t,i,u: t.at[i].add(u)).lower(sds((64,32),sh=S('x','y')),sds((16,),jnp.int32),sds((16,32)))
@prog('take_along')
def _(): return jax.jit(lambda t,i: jnp.take_along_axis(t,i,1)).lower(sds((16,32),sh=S('x',None)),sds((16,4),jnp.int32,S('x',None)))
@prog('conv_spatial')
def _(): return jax.jit(lambda a,w: lax.conv_general_dilated(a,w,(1,1),'SAME')).lower(sds((8,3,32,32),sh=S('y',None,'x',None)),sds((16,3,3,3)))
@prog('conv_batch_feature')
def _(): return jax.jit(lambda a,w: lax.conv_general_dilated(a,w,(1,1),'SAME')).lower(sds((8,4,32,32),sh=S('x',None,None,None)),sds((16,4,3,3),sh=S('y',None,None,None)))
@prog('pool')
def _(): return jax.jit(lambda a: lax.reduce_window(a,-jnp.inf,lax.max,(1,1,2,2),(1,1,2,2),'VALID')).lower(sds((8,4,32,32),sh=S('x',None,'y',None)))
@prog('cumsum')
def _(): return jax.jit(lambda a: (jnp.cumsum(a,0),jnp.cumsum(a,1),lax.cumlogsumexp(a,0))).lower(sds((16,32),sh=S('x','y')))
@prog('while')
def _(): return jax.jit(lambda a: lax.while_loop(lambda c:(c[0]<5)&(c[1].sum()<1e9),lambda c:(c[0]+1,c[1]*2@jnp.ones((32,32))),(0,a))).lower(sds((16,32),sh=S('x','y')))
@prog('scan')
def _(): return jax.jit(lambda a,ws: lax.scan(lambda c,w:(jnp.tanh(c@w),c.sum()),a,ws)).lower(sds((16,32),sh=S('x',None)),sds((5,32,32),sh=S(None,None,'y')))
@prog('cond')
def _(): return jax.jit(lambda p,a: lax.cond(p,lambda a:jnp.sin(a),lambda a:a.T.reshape(16,32),a)).lower(sds((),jnp.bool_),sds((16,32),sh=S('x','y')))
@prog('pad_slice_rev_concat')
def _(): return jax.jit(lambda a: (jnp.pad(a,((1,2),(0,0))),a[3:11],a[::-1],jnp.concatenate([a,a],0),jnp.roll(a,1,0),a[::2])).lower(sds((16,32),sh=S('x','y')))
@prog('reshape')
def _(): return jax.jit(lambda a: (a.reshape(4,4,32),a.reshape(512),a.reshape(16,8,4),a.T)).lower(sds((16,32),sh=S('x','y')))
@prog('dus_ds')
def _(): return jax.jit(lambda a,u,i: (lax.dynamic_update_slice(a,u,(i,0)),lax.dynamic_slice(a,(i,0),(4,32)))).lower(sds((16,32),sh=S('x','y')),sds((1,32)),sds((),jnp.int32))
@prog('fft_chol_solve')
def _(): return jax.jit(lambda a: (jnp.fft.fft(a),jnp.linalg.cholesky(a@jnp.swapaxes(a,1,2)+jnp.eye(8)),jnp.linalg.solve(a,a))).lower(sds((16,8,8),sh=S('x',None,None)))
@prog('explicit')
def _():
    E=lambda *p: NamedSharding(emesh,P(*p))
    def f(a,b):
        c=jnp.einsum('ij,jk->ik',a,b,out_sharding=P('x',None)); d=jax.sharding.reshard(c,P(None,'y')); return jnp.sin(d)
    with jax.set_mesh(emesh):
        return jax.jit(f).lower(sds((16,32),sh=E('x','y')),sds((32,8),sh=E('y',None)))
@prog('explicit_psum_unreduced')
def _():
    E=lambda *p,**k: NamedSharding(emesh,P(*p,**k))
    def f(a,b):
        c=jnp.einsum('ij,jk->ik',a,b,out_sharding=P('x',None,unreduced={'y'})); return jax.sharding.reshard(c,P('x',None))
    with jax.set_mesh(emesh):
        return jax.jit(f).lower(sds((16,32),sh=E('x','y')),sds((32,8),sh=E('y',None)))
@prog('explicit_auto_axes')
def _():
    E=lambda *p: NamedSharding(emesh,P(*p))
    with jax.set_mesh(emesh):
        return jax.jit(jax.sharding.auto_axes(lambda a:a.sum(0)*2,out_sharding=P('y'))).lower(sds((16,32),sh=E('x','y')))
@prog('custom_partitioning')
def _():
    from jax.experimental.custom_partitioning import custom_partitioning
    @custom_partitioning
    def my(x): return jnp.fft.fft(x)
    def part(mesh,arg_shapes,res): return mesh,(lambda x:jnp.fft.fft(x)),arg_shapes[0].sharding,(arg_shapes[0].sharding,)
    my.def_partition(partition=part,infer_sharding_from_operands=lambda m,a,r:a[0].sharding,sharding_rule='...i -> ...i')
    return jax.jit(my).lower(sds((16,32),jnp.complex64,S('x',None)))
@prog('custom_call_ffi')
def _():
    return jax.jit(lambda a: jnp.linalg.qr(a)).lower(sds((16,8,8),sh=S('x',None,None)))
@prog('memory_kind')
def _():
    return jax.jit(lambda a: a+1,out_shardings=NamedSharding(mesh,P('x'),memory_kind='pinned_host')).lower(sds((16,32),sh=S('x',None)))
@prog('shard_alike')
def _():
    from jax.experimental.shard_alike import shard_alike
    return jax.jit(lambda a: shard_alike(a,jnp.zeros((16,32)))).lower(sds((16,32),sh=S('x',None)))
@prog('jit_nested_call')
def _():
    g=jax.jit(lambda a:jnp.sin(a)@jnp.ones((32,32)))
    return jax.jit(lambda a: g(g(a))).lower(sds((16,32),sh=S('x','y')))
@prog('remat')
def _():
    return jax.jit(jax.grad(lambda a: jax.checkpoint(lambda a:jnp.sin(jnp.sin(a)))(a).sum())).lower(sds((16,32),sh=S('x','y')))
@prog('callback')
def _():
    return jax.jit(lambda a: (jax.debug.print('{}',a.sum()),a)[1]).lower(sds((16,32),sh=S('x','y')))
@prog('pure_callback')
def _():
    return jax.jit(lambda a: jax.pure_callback(lambda x:np.asarray(x)*2,sds((16,32)),a)).lower(sds((16,32),sh=S('x','y')))
@prog('device_permuted_mesh')
def _():
    m=Mesh(np.array(jax.devices())[[3,1,2,0,5,4,7,6]].reshape(4,2),('x','y'))
    return jax.jit(lambda a:a+1).lower(sds((16,32),sh=NamedSharding(m,P('x'))))
@prog('submesh')
def _():
    m=Mesh(np.array(jax.devices()[2:6]),('x',))
    return jax.jit(lambda a:a+1).lower(sds((16,32),sh=NamedSharding(m,P('x'))))
@prog('auto_axis_unspecified_out')
def _():
    return jax.jit(lambda a,b:(a,b)).lower(sds((16,32),sh=S('x')),sds((16,)))
@prog('single_device_const')
def _():
    return jax.jit(lambda a: a+jnp.arange(32.)).lower(sds((16,32),sh=S('x')))
@prog('abstract_two_axes_subset')
def _():
    return jax.jit(lambda a: lax.with_sharding_constraint(a.reshape(4,2,64),S('x','y'))).lower(sds((8,64),sh=S(('x','y'))))

M8=mesh1
from jax._src.lax import parallel
@prog('async_psum')
def _():
    m=jax.make_mesh((4,2),('x','y'),axis_types=(AxisType.Explicit,)*2)
    with jax.set_mesh(m):
        f=jax.shard_map(lambda x: parallel.psum_start(x,'x').done(),in_specs=P('x','y'),out_specs=P(None,'y'))
        return jax.jit(f).lower(sds((16,32),sh=NamedSharding(m,P('x','y'))))
@prog('ragged_all_to_all')
def _():
    def f(o,out,io,ss,oo,rs): return lax.ragged_all_to_all(o,out,io[0],ss[0],oo[0],rs[0],axis_name='d')
    i=sds((8,8),jnp.int32)
    return jax.jit(sm(f,(P('d'),)*6,P('d'),mesh=M8,check_vma=False)).lower(sds((64,)),sds((64,)),i,i,i,i)
@prog('ragged_all_to_all_in_pieces')
def _():
    def f(o,out,io,ss,oo,rs):
        n=[jnp.broadcast_to(x,(3,8)) for x in (io,ss,oo,rs)]
        return jax.vmap(lambda o,out,*n:lax.ragged_all_to_all(o,out,*n,axis_name='d'))(o,out,*n)
    i=sds((8,8),jnp.int32)
    return jax.jit(sm(f,(P(None,'d'),)*2+(P('d'),)*4,P(None,'d'),mesh=M8,check_vma=False)).lower(sds((3,64)),sds((3,64)),i,i,i,i)
@prog('psum_groups')
def _(): return jax.jit(sm(lambda a: lax.psum(a,'d',axis_index_groups=[[0,1,2,3],[4,5,6,7]]),P('d'),P('d'),mesh=M8,check_vma=False)).lower(sds((16,4)))
@prog('psum_uneven_groups')
def _(): return jax.jit(sm(lambda a: lax.psum(a,'d',axis_index_groups=[[0,1,2],[3,4,5,6,7]]),P('d'),P('d'),mesh=M8,check_vma=False)).lower(sds((16,4)))
@prog('psum_pytree_bool')
def _(): return jax.jit(sm(lambda a,b: (lax.psum((a,b),'d'),lax.pmax(b>3,'d')),(P('d'),P('d')),P(),mesh=M8)).lower(sds((16,4)),sds((16,),jnp.int32))
@prog('bf16_psum_scatter_untiled')
def _(): return jax.jit(sm(lambda a: lax.psum_scatter(a,'d'),P(None),P('d'),mesh=M8,check_vma=False)).lower(sds((8,4),jnp.bfloat16))
@prog('unreduced_out')
def _():
    m=jax.make_mesh((4,2),('x','y'),axis_types=(AxisType.Explicit,)*2)
    with jax.set_mesh(m):
        f=lambda a,b: jnp.einsum('ij,jk->ik',a,b,out_sharding=P('x',None,unreduced={'y'}))
        return jax.jit(f).lower(sds((16,32),sh=NamedSharding(m,P('x','y'))),sds((32,8),sh=NamedSharding(m,P('y',None))))
@prog('key_array_sharded')
def _(): return jax.jit(lambda k: jax.vmap(jax.random.normal)(k)).lower(jax.ShapeDtypeStruct((16,),jax.random.key(0).dtype,sharding=S('x')))
@prog('explicit_mixed_auto')
def _():
    m=jax.make_mesh((4,2),('x','y'),axis_types=(AxisType.Explicit,AxisType.Auto))
    with jax.set_mesh(m):
        return jax.jit(lambda a: jnp.sin(a).sum(0)).lower(sds((16,32),sh=NamedSharding(m,P('x','y'))))
@prog('nested_pmap_collective_matmul')
def _():
    def f(a,w):
        def body(i,c):
            acc,a=c; acc=acc+a@w; return acc,lax.ppermute(a,'d',[(j,(j+1)%8) for j in range(8)])
        return lax.fori_loop(0,8,body,(lax.pcast(jnp.zeros((2,8)),'d',to='varying'),a))[0]
    return jax.jit(sm(f,(P('d'),P(None,'d')),P('d'),mesh=M8)).lower(sds((16,32)),sds((32,64)))
@prog('cond_in_shard_map')
def _():
    def f(a):
        return lax.cond(lax.axis_index('d')<4,lambda a:a*2,lambda a:a,a)
    return jax.jit(sm(f,P('d'),P('d'),mesh=M8)).lower(sds((16,4)))
@prog('io_callback_in_shard_map')
def _():
    return jax.jit(sm(lambda a: jax.pure_callback(lambda x:np.asarray(x)*2,sds((2,4)),a),P('d'),P('d'),mesh=M8)).lower(sds((16,4)))
@prog('gspmd_mode')
def _():
    with jax._src.config.use_shardy_partitioner(False):
        return jax.jit(lambda a: lax.with_sharding_constraint(jnp.sin(a),S('y','x'))+1).lower(sds((16,32),sh=S('x',None)))
@prog('several_results')
def _():
    f=lambda a: (lax.sort((jnp.floor(a),a),num_keys=2,dimension=1),lax.top_k(a,4),jnp.argsort(a,axis=0),lax.sort((a,-a),dimension=0)[1])
    return jax.jit(f).lower(sds((16,32),sh=S('x','y')))
@prog('gather_scatter_in_batches')
def _():
    def f(a,i):
        b=jax.vmap(lambda x,k: x.at[k].add(2.0))(a,i)
        return b,jax.vmap(lambda x,k: x[k])(a,i),a.at[:,jnp.array([3,1])].set(0),jnp.arange(9.0)[i],a[:,i[0]]
    return jax.jit(f).lower(sds((16,6,8),sh=S('x',None,'y')),sds((16,3),jnp.int32,S('x',None)))
@prog('made_anew')
def _():
    def f(x):
        y=jax.random.uniform(jax.random.key(7),x.shape)
        at=lax.broadcasted_iota(jnp.bfloat16,x.shape,1)
        more=(jnp.arange(x.size,dtype=jnp.uint8)*3).reshape(x.shape)
        return x+y,x*at,x+more,(x.T+y.T),lax.with_sharding_constraint(y,S('y','x')),y.sum()
    return jax.jit(f).lower(sds((24,600),sh=S('x','y')))

@prog('collectives_beside_an_automatic_axis')
def _():
    def f(a):
        g=lax.all_gather(a,'x',axis=0,tiled=True)
        return (g,lax.all_gather(a,'x',axis=1),lax.psum_scatter(g,'x',scatter_dimension=1,tiled=True),
                lax.psum_scatter(g.reshape(4,4,8,8),'x'),lax.all_to_all(a,'x',1,0,tiled=True),lax.all_to_all(a,'x',0,0,tiled=True))
    return jax.jit(sm(f,P('x'),P('x'),axis_names={'x'},check_vma=False)).lower(sds((16,8,8),sh=S('x',None,'y')))

@prog('parts_sent_beside_a_manual_axis')
def _():
    m=jax.make_mesh((2,2,2),('a','m','b'),axis_types=(AxisType.Auto,)*3)
    def f(x):
        to=lambda x,*s: lax.with_sharding_constraint(x,NamedSharding(jax.sharding.get_abstract_mesh(),P(*s)))
        return jnp.sin(to(to(x,None,'a')*2+lax.axis_index('m'),None,'b'))
    return jax.jit(jax.shard_map(f,mesh=m,in_specs=P('m'),out_specs=P('m'),axis_names={'m'})).lower(sds((4,8),sh=NamedSharding(m,P('m','a'))))


# ---- what is done with them ----

def random_array(rng, aval, sharding):
    """Small integers; keys are keys."""
    if jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key):
        return jax.device_put(jax.random.split(jax.random.key(0), aval.shape),
                              sharding)
    if aval.dtype == np.bool_:
        v = np.ones(aval.shape, bool)
    elif np.issubdtype(aval.dtype, np.integer):
        v = rng.integers(0, 4, aval.shape)
    else:
        v = rng.standard_normal(aval.shape)
    return jax.device_put(v.astype(aval.dtype), sharding)


def whole(x):
    """The array that its shards are of; unreduced ones are to be added."""
    if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
        x = jax.random.key_data(x)
    if getattr(getattr(x.sharding, "spec", None), "unreduced", None):
        parts = NamedSharding(x.sharding.mesh, P(*x.sharding.spec.partitions))
        where = parts.devices_indices_map(x.shape)
        out = np.zeros(x.shape, x.dtype)
        for s in x.addressable_shards:
            out[where[s.device]] += np.asarray(s.data)
        return out
    shards = x.addressable_shards
    for s in shards if ON_XPU else []:  # copies of one part are the same
        if s.index == shards[0].index:
            np.testing.assert_array_equal(np.asarray(s.data),
                                          np.asarray(shards[0].data))
    return np.asarray(x)


def run_one(lowered):
    compiled = lowered.compile()
    rng = np.random.default_rng(0)
    args, _ = compiled.args_info
    flat, tree = jax.tree.flatten(args)
    where = jax.tree.leaves(
        compiled.input_shardings[0],
        is_leaf=lambda x: isinstance(x, jax.sharding.Sharding))
    if len(where) != len(flat):  # an argument that is not used has none
        where = [None] * len(flat)
    values = [random_array(rng, a, s) for a, s in zip(flat, where)]
    out = jax.tree.leaves(compiled(*jax.tree.unflatten(tree, values)))
    specs = [str(getattr(x.sharding, "spec", x.sharding)) for x in out]
    return [whole(x).astype(np.float32) if x.dtype == jnp.bfloat16 else whole(x)
            for x in out], specs


def main(what, *rest):
    out = rest[-1] if what == "lower" else rest[1]
    only = rest[2:] if what == "run" else ()
    result = {}
    for name, lower in progs:
        if only and name not in only:
            continue
        try:
            lowered = lower()
            if what == "lower":
                with open(os.path.join(out, name + ".mlir"), "w") as f:
                    f.write(lowered.as_text())
            else:
                result[name] = run_one(lowered)
        except Exception as e:
            result[name] = f"{type(e).__name__}: {e}"
    if what == "run":
        with open(out, "wb") as f:
            pickle.dump(result, f)
    else:
        assert not result, result


if __name__ == "__main__":
    main(*sys.argv[1:])
