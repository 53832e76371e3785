// The crate in out/rust contains the library; here it is the dependency `numbers`.

use numbers::{Bundle, Queue};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bundle = Bundle::new()?;
    let x: Vec<f32> = (0..5000).map(|i| i as f32).collect();
    let mut out = vec![0f32; x.len()];
    let n = x.len() as i32;
    unsafe { bundle.add(&Queue::cpu(), x.as_ptr(), x.as_ptr(), out.as_mut_ptr(), n) }?;
    println!("4999 + 4999 = {}", out[4999]);
    Ok(())
}
