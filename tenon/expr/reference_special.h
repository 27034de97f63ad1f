// The scalar references of special functions that the C library lacks, in double: to some 1e-12, for checks
// at build time and tests. Used by reference.cc only.
#pragma once

namespace tenon::expr::reference {

double digamma(double x);
double zeta(double s, double q);
double erfinv(double x);
double erfcx(double x);
double ndtr(double x);
double ndtri(double p);
double log_ndtr(double x);
double gammainc(double a, double x);
double gammaincc(double a, double x);
double i0e(double x);
double i1e(double x);
double bessel_k(double n, double x);
double airy_ai(double x);
double airy_ai_prime(double x);

}  // namespace tenon::expr::reference
