//! Tests of the mail store as a whole, on a simulated disk in virtual time.

mod content;
mod crash;
mod damage;
mod disk;
mod failure;
mod fixture;
mod lies;
mod life;
mod shape;
