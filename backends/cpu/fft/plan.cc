#include "backends/cpu/fft/plan.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "backends/cpu/fft/roots.h"
#include "backends/cpu/fft/transform.h"

namespace tenon::cpu {
namespace {

/// From this length on, a transform is a matrix of shorter ones that stay in the caches.
constexpr int64_t kBlocked = int64_t{1} << 17;
/// What plans of one type may take in memory.
constexpr size_t kCacheBytes = size_t{64} << 20;

/// The passes of a length in their order: odd factors, then powers of two, the last as large as can be. Empty
/// where a prime factor is too large.
std::vector<int64_t> radices(int64_t n) {
  std::vector<int64_t> odd;
  int twos = 0;
  for (; n % 2 == 0; n /= 2) ++twos;
  for (int64_t p = 3; p <= kFftLargestPrime; p += 2) {
    for (; n % p == 0; n /= p) odd.push_back(p);
  }
  if (n > 1) return {};
  std::vector<int64_t> found(odd.rbegin(), odd.rend());
  // Sixteen at the end; before it eights, and first of all what they leave: 2, 4, or 16 in place of 2 and 8.
  const int last = std::min(twos, 4), rest = twos - last;
  const int first = rest % 3 == 1 && rest > 1 ? 4 : rest % 3;
  if (first > 0) found.push_back(int64_t{1} << first);
  for (int i = first; i < rest; i += 3) found.push_back(8);
  if (last > 0) found.push_back(int64_t{1} << last);
  return found;
}

template <class T>
void put(std::vector<T>& table, size_t at, size_t step, std::complex<double> value) {
  table[at] = static_cast<T>(value.real());
  table[at + step] = static_cast<T>(value.imag());
}

template <class T>
void make_passes(FftPlan<T>& plan, const std::vector<int64_t>& factors) {
  const UnitRoots roots(plan.n);
  int64_t groups = 1;
  for (const int64_t r : factors) {
    FftPass pass{r, groups, plan.n / groups / r, plan.table.size(), 0};
    const auto inner = static_cast<size_t>(pass.inner);
    if (inner > 1) {
      plan.table.resize(plan.table.size() + 2 * inner * static_cast<size_t>(r - 1));
      for (int64_t c = 1; c < r; ++c) {
        for (int64_t i = 0; i < pass.inner; ++i) {
          const size_t at = pass.twiddles + static_cast<size_t>(2 * (c - 1)) * inner + static_cast<size_t>(i);
          put(plan.table, at, inner, std::conj(roots(c * i * groups)));
        }
      }
    }
    if (r % 2 == 1) {
      pass.roots = plan.table.size();
      plan.table.resize(plan.table.size() + 2 * static_cast<size_t>(r));
      for (int64_t j = 0; j < r; ++j)
        put(plan.table, pass.roots + static_cast<size_t>(j), static_cast<size_t>(r), roots(j * (plan.n / r)));
    }
    plan.passes.push_back(pass);
    groups *= r;
  }
  plan.table.resize(plan.table.size() + kFftPadding);
}

template <class T>
void make_blocked(FftPlan<T>& plan, const std::vector<int64_t>& factors) {
  // The divisor nearest below the root: columns are what is strided in memory.
  std::vector<int64_t> divisors{1};
  for (const int64_t r : factors) {
    for (int64_t rest = r; rest > 1;) {
      int64_t p = 2;
      while (rest % p != 0) ++p;
      rest /= p;
      for (size_t i = divisors.size(); i-- > 0;) divisors.push_back(divisors[i] * p);
      std::sort(divisors.begin(), divisors.end());
      divisors.erase(std::unique(divisors.begin(), divisors.end()), divisors.end());
    }
  }
  int64_t rows = 1;
  for (const int64_t d : divisors) rows = d * d <= plan.n ? d : rows;
  plan.kind = FftKind::Blocked;
  plan.first = fft_plan<T>(rows);
  plan.second = fft_plan<T>(plan.n / rows);
  const UnitRoots roots(plan.n);
  const int64_t lanes = kFftLanes<T>, panels = plan.panels();
  plan.table.resize(static_cast<size_t>(2 * rows * (lanes + panels)));
  for (int64_t k = 0; k < rows; ++k) {
    for (int64_t l = 0; l < lanes; ++l)
      put(plan.table, static_cast<size_t>(2 * k * lanes + l), static_cast<size_t>(lanes),
          std::conj(roots(k * l % plan.n)));
    for (int64_t p = 0; p < panels; ++p)
      put(plan.table, static_cast<size_t>(2 * (rows * lanes + k * panels + p)), 1,
          std::conj(roots(k * p * lanes % plan.n)));
  }
}

/// The least length from `least` on whose passes are all of whole vectors.
int64_t convolution_length(int64_t least) {
  int64_t best = 0;
  for (const int64_t odd : {1, 3, 5, 9, 15, 25, 27}) {
    int64_t m = odd * 16;
    while (m < least) m *= 2;
    if (best == 0 || m < best) best = m;
  }
  return best;
}

/// The spectrum of a chirp, which `values` has from 0 to n - 1, mirrored about 0 in a length of m; over m.
/// Where that takes no longer than some hundredths of a second it is exact in double.
template <class T>
std::vector<std::complex<double>> chirp_spectrum(const std::vector<ComplexPair>& values, int64_t m) {
  const auto n = static_cast<int64_t>(values.size());
  std::vector<std::complex<double>> found(static_cast<size_t>(m));
  const auto number = static_cast<double>(m);
  if (std::is_same_v<T, double> && m <= 1 << 15) {
    std::vector<ComplexPair> x(found.size());
    for (int64_t k = 0; k < n; ++k)
      x[static_cast<size_t>(k)] = x[static_cast<size_t>((m - k) % m)] = values[static_cast<size_t>(k)];
    transform_pairs(x);
    for (size_t k = 0; k < found.size(); ++k) found[k] = {x[k].re.high / number, x[k].im.high / number};
    return found;
  }
  const auto plan = fft_plan<double>(m);
  FftSpace<double> space(plan->capacity(), 1);
  const FftPlanes<double> x = space.data();
  std::fill_n(x.re, m, 0.0);
  std::fill_n(x.im, m, 0.0);
  for (int64_t k = 0; k < n; ++k) {
    for (const int64_t at : {k, (m - k) % m}) {
      x.re[at] = values[static_cast<size_t>(k)].re.high;
      x.im[at] = values[static_cast<size_t>(k)].im.high;
    }
  }
  fft_forward(*plan, space, 1);
  for (size_t k = 0; k < found.size(); ++k)
    found[k] = {space.data().re[k] / number, space.data().im[k] / number};
  return found;
}

template <class T>
void make_chirp(FftPlan<T>& plan) {
  const int64_t n = plan.n, m = convolution_length(2 * n - 1);
  plan.kind = FftKind::Chirp;
  plan.first = fft_plan<T>(m);
  const auto step = static_cast<size_t>(n + kFftPadding);
  plan.table.resize(2 * step + 2 * static_cast<size_t>(m + kFftPadding));
  const UnitRoots roots(2 * n);
  std::vector<ComplexPair> values;
  int64_t square = 0;  // k^2 modulo 2 n
  for (int64_t k = 0; k < n; ++k) {
    values.push_back(roots.pair(square));
    put(plan.table, static_cast<size_t>(k), step, {values.back().re.high, -values.back().im.high});
    square = (square + 2 * k + 1) % (2 * n);
  }
  const std::vector<std::complex<double>> spectrum = chirp_spectrum<T>(values, m);
  for (size_t k = 0; k < spectrum.size(); ++k)
    put(plan.table, 2 * step + k, static_cast<size_t>(m + kFftPadding), spectrum[k]);
}

template <class T>
std::shared_ptr<const FftPlan<T>> make(const FftPlan<T>*, int64_t n) {
  auto plan = std::make_shared<FftPlan<T>>();
  plan->n = n;
  const std::vector<int64_t> factors = radices(n);
  if (n > 1 && factors.empty())
    make_chirp(*plan);
  else if (n >= kBlocked)
    make_blocked(*plan, factors);
  else
    make_passes(*plan, factors);
  return plan;
}

template <class T>
std::shared_ptr<const RealFftPlan<T>> make(const RealFftPlan<T>*, int64_t n) {
  auto plan = std::make_shared<RealFftPlan<T>>();
  plan->half = fft_plan<T>(n % 2 == 0 ? n / 2 : n);
  if (n % 2 == 0) {
    const auto step = static_cast<size_t>(n / 2 + 1);
    plan->table.resize(2 * step + kFftPadding);
    const UnitRoots roots(n);
    for (int64_t k = 0; k <= n / 2; ++k) put(plan->table, static_cast<size_t>(k), step, std::conj(roots(k)));
  }
  return plan;
}

/// Plans by length, those used last.
template <class P>
class Cache {
 public:
  std::shared_ptr<const P> get(int64_t n) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto it = entries_.find(n); it != entries_.end()) {
        it->second.used = ++clock_;
        return it->second.plan;
      }
    }
    // Without the lock: a plan asks for other plans. Two threads may make the same one.
    const std::shared_ptr<const P> plan = make(static_cast<const P*>(nullptr), n);
    const std::lock_guard lock(mutex_);
    const auto [it, added] = entries_.try_emplace(n, Entry{plan, ++clock_});
    if (added) bytes_ += plan->bytes();
    while (bytes_ > kCacheBytes && entries_.size() > 1) {
      const auto oldest =
          std::min_element(entries_.begin(), entries_.end(),
                           [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
      bytes_ -= oldest->second.plan->bytes();
      entries_.erase(oldest);
    }
    return plan;
  }

 private:
  struct Entry {
    std::shared_ptr<const P> plan;
    uint64_t used;
  };
  std::mutex mutex_;
  std::map<int64_t, Entry> entries_;
  size_t bytes_ = 0;
  uint64_t clock_ = 0;
};

/// Never destroyed: threads may outlive the main one.
template <class P>
Cache<P>& cache() {
  static auto* const all = new Cache<P>();
  return *all;
}

}  // namespace

template <class T>
std::shared_ptr<const FftPlan<T>> fft_plan(int64_t n) {
  return cache<FftPlan<T>>().get(n);
}
template <class T>
std::shared_ptr<const RealFftPlan<T>> real_fft_plan(int64_t n) {
  return cache<RealFftPlan<T>>().get(n);
}

template std::shared_ptr<const FftPlan<float>> fft_plan<float>(int64_t);
template std::shared_ptr<const FftPlan<double>> fft_plan<double>(int64_t);
template std::shared_ptr<const RealFftPlan<float>> real_fft_plan<float>(int64_t);
template std::shared_ptr<const RealFftPlan<double>> real_fft_plan<double>(int64_t);

}  // namespace tenon::cpu
