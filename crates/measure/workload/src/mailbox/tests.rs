//! Tests the whole mail store on a simulated disk in virtual time.

mod content;
mod crash;
mod damage;
mod disk;
mod failure;
mod fixture;
mod life;
mod shape;
mod write_faults;
