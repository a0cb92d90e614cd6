use speculation::*; use std::time::Instant;
fn main(){
 let v=4096; let base:Vec<f32>=(0..v).map(|i| ((i*7919)%1000) as f32/60.0 - 8.0).collect();
 let noise=noise::Noise::new(1,0); let mut pl=pipeline::Pipeline::new(sampling::SamplingParams::default());
 let h=history::History::default(); let n=2000;
 let mut rows=vec![base.clone(); 1];
 let (mut a,mut b,mut s)=(0u128,0u128,0u64);
 for i in 0..n { rows[0].copy_from_slice(&base); let t=Instant::now(); pl.law(&mut rows[0],&h,i).unwrap(); a+=t.elapsed().as_nanos(); let t=Instant::now(); s+=coupled::choice(&rows[0],&noise,i) as u64; b+=t.elapsed().as_nanos(); }
 println!("law {} us choice {} us {}", a as f64/n as f64/1e3, b as f64/n as f64/1e3, s);
}
