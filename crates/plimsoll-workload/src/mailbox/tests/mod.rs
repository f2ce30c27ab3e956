//! Tests of the mail store as a whole, on a simulated disk in virtual time.

mod crash;
mod disk;
mod fixture;
mod life;
mod shape;
