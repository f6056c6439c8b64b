// Functions that WGSL has not, or that adapters compute too coarsely: within 2 units of float32's last place (gelu: 8),
// for every float. Adapters need not fuse multiply and add, and compilers may drop a difference that would be zero in
// exact arithmetic; so where low parts matter, high parts are cut off by their bits.

// Infinities and NaN are made by this: an expression of constants, as bitcast<f32>(0x7f800000u) is one, may be none of
// them. A call is no such expression, and compilers inline it.
fn float_of_bits(bits: u32) -> f32 {
  return bitcast<f32>(bits);
}

fn is_nan(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

fn is_infinite(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u;
}

// Integers in the order of the floats, NaN apart; both zeros are 0. Unlike comparisons, it knows subnormal numbers.
fn order(x: f32) -> i32 {
  let bits = bitcast<i32>(x);
  return select(bits, -2147483647i - 1i - bits, bits < 0i);
}

fn is_less(a: f32, b: f32) -> bool {
  return order(a) < order(b) && !is_nan(a) && !is_nan(b);
}

fn is_equal(a: f32, b: f32) -> bool {
  return order(a) == order(b) && !is_nan(a);
}

// The greater one; NaN if either is.
fn maximum(a: f32, b: f32) -> f32 {
  return select(b, a, is_nan(a) || (order(a) > order(b) && !is_nan(b)));
}

// The lesser one; NaN if either is.
fn minimum(a: f32, b: f32) -> f32 {
  return select(b, a, is_nan(a) || (order(a) < order(b) && !is_nan(b)));
}

// max(0, x); NaN for NaN. Its bits tell of less than 0, but not NaN, in few instructions.
fn ramp(x: f32) -> f32 {
  return select(x, 0.0, bitcast<u32>(x) - 0x80000000u <= 0x7f800000u);
}

// 0 · x, which compilers would take for 0 whatever x is.
fn zero_times(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  return bitcast<f32>(select(bits & 0x80000000u, 0x7fc00000u, (bits & 0x7f800000u) == 0x7f800000u));
}

// The first 12 bits of the significand: the product of two such numbers is exact.
fn head(x: f32) -> f32 {
  return bitcast<f32>(bitcast<u32>(x) & 0xfffff000u);
}

// x · 2ⁿ, for n from -252 to 254, through two powers of two that are normal numbers.
fn scaled(x: f32, n: i32) -> f32 {
  let half = n >> 1u;
  return x * bitcast<f32>((half + 127i) << 23u) * bitcast<f32>((n - half + 127i) << 23u);
}

// a - b · c, exact where b · c is near a.
fn residual(a: f32, b: f32, c: f32) -> f32 {
  let b_head = head(b);
  let c_head = head(c);
  let b_tail = b - b_head;
  let c_tail = c - c_head;
  return (((a - b_head * c_head) - b_head * c_tail) - b_tail * c_head) - b_tail * c_tail;
}

// a / b, rounded to the nearest. A float only guesses the quotient, and integers correct it: division may be off, and
// corrections computed in floats are what compilers optimize away.
fn quotient(a: f32, b: f32) -> f32 {
  let a_magnitude = bitcast<u32>(a) & 0x7fffffffu;
  let b_magnitude = bitcast<u32>(b) & 0x7fffffffu;
  let sign = (bitcast<u32>(a) ^ bitcast<u32>(b)) & 0x80000000u;
  let is_same = a_magnitude == b_magnitude && (a_magnitude == 0u || a_magnitude == 0x7f800000u);
  if (a_magnitude > 0x7f800000u || b_magnitude > 0x7f800000u || is_same) {
    return float_of_bits(0x7fc00000u);
  }
  if (a_magnitude == 0x7f800000u || b_magnitude == 0u) {
    return bitcast<f32>(sign | 0x7f800000u);
  }
  if (a_magnitude == 0u || b_magnitude == 0x7f800000u) {
    return bitcast<f32>(sign);
  }
  let top = whole_significand(a);
  let bottom = whole_significand(b);
  let shift = select(24u, 23u, top >= bottom);
  // How often bottom is in top · 2ˢʰⁱᶠᵗ, 2²³ to 2²⁴ times, and what remains: that is small, so its low 32 bits tell it.
  var times = u32(f32(top) / f32(bottom) * f32(1u << shift));
  var remainder = i32((top << shift) - times * bottom);
  let off = i32(floor(f32(remainder) / f32(bottom)));
  times += u32(off);
  remainder -= off * i32(bottom);
  if (remainder < 0i) {
    times -= 1u;
    remainder += i32(bottom);
  } else if (remainder >= i32(bottom)) {
    times += 1u;
    remainder -= i32(bottom);
  }
  return bitcast<f32>(sign | rounded_bits(times, exponent(a) - exponent(b) - i32(shift), remainder, i32(bottom)));
}

// Likewise for a constant b from 2⁻⁴⁰ to 2⁴⁰, or less than zero, of which inverse is 1 / b: within two units of the last
// place a product guesses the quotient, and what remains of a says how many to add. No quotient lies midway.
fn quotient_by(a: f32, b: f32, inverse: f32) -> f32 {
  let magnitude = bitcast<u32>(a) & 0x7fffffffu;
  let guess = bitcast<u32>(a * inverse);
  let b_bits = bitcast<u32>(b) & 0x7fffffffu;
  let top = (magnitude & 0x007fffffu) | 0x00800000u;
  let bottom = (b_bits & 0x007fffffu) | 0x00800000u;
  let times = (guess & 0x007fffffu) | 0x00800000u;
  let shift = (magnitude >> 23u) + 150u - ((guess >> 23u) & 0xffu) - (b_bits >> 23u);
  let remainder = i32((top << (shift & 31u)) - times * bottom);
  let is_edge = (guess & 0x007fffffu) < 3u && remainder < 0i;  // below, units are half as large
  if (magnitude - 0x21800000u > 0x3c000000u || is_edge) {
    return quotient(a, b);
  }
  let whole = i32(bottom);
  let up = select(0u, 1u, 2i * remainder > whole) + select(0u, 1u, 2i * remainder > 3i * whole);
  let down = select(0u, 1u, 2i * remainder < -whole) + select(0u, 1u, 2i * remainder < -3i * whole);
  return bitcast<f32>(guess + up - down);
}

// The bits of (n + remainder / whole) · 2ᵉ, for n from 2²³ to 2²⁴ - 1.
fn rounded_bits(n: u32, e: i32, remainder: i32, whole: i32) -> u32 {
  let biased = e + 150i;
  if (biased > 254i) {
    return 0x7f800000u;
  }
  if (biased > 0i) {
    // A carry goes into the exponent, as it should.
    return (u32(biased) << 23u) + (n - 0x00800000u) + select(0u, 1u, 2i * remainder > whole);
  }
  let dropped_bits = u32(min(1i - biased, 25i));
  let kept = n >> dropped_bits;
  let dropped = n - (kept << dropped_bits);
  let half = 1u << (dropped_bits - 1u);
  let is_up = dropped > half || (dropped == half && (remainder > 0i || (kept & 1u) == 1u));
  return kept + select(0u, 1u, is_up);
}

// The significand of a finite number, not 0, as an integer from 2²³ to 2²⁴ - 1.
fn whole_significand(x: f32) -> u32 {
  return (bitcast<u32>(significand(x)) & 0x007fffffu) | 0x00800000u;
}

// x, rounded to the nearest, as conversion need not: both halves are exact, and so is all but the sum.
fn float_i32(x: i32) -> f32 {
  return f32(x >> 16u) * 65536.0 + f32(x & 0xffffi);
}

fn float_u32(x: u32) -> f32 {
  return f32(x >> 16u) * 65536.0 + f32(x & 0xffffu);
}

// The bits of x as a float16, rounded to the nearest, ties to even: pack2x16float need not round so, nor overflow.
fn half_bits(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  let sign = (bits >> 16u) & 0x8000u;
  let magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return sign | 0x7e00u;
  }
  if (magnitude >= 0x477ff000u) {
    return sign | 0x7c00u;
  }
  if (magnitude >= 0x38800000u) {
    return sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13u) & 1u)) >> 13u);
  }
  // A multiple of 2⁻²⁴, where the bits of x are those of a multiple of 2ᵉ⁻¹⁵⁰.
  let dropped_bits = min(126u - (magnitude >> 23u), 25u);
  let whole = (magnitude & 0x007fffffu) | 0x00800000u;
  let kept = whole >> dropped_bits;
  let dropped = whole - (kept << dropped_bits);
  let half = 1u << (dropped_bits - 1u);
  return sign | (kept + select(0u, 1u, dropped > half || (dropped == half && (kept & 1u) == 1u)));
}

// x, rounded to float16 as by half_bits: the last bit of a sum with 1½ · 2¹³ · 2ᵉ is that of a float16 between 2ᵉ and
// 2ᵉ⁺¹. What is added comes of integers, what is taken away of floats, or compilers would do neither.
fn rounded_half(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  let unit = max(bits & 0x7f800000u, 0x38800000u);
  let sum = x + bitcast<f32>(unit + 0x06c00000u);
  let near = fma(bitcast<f32>(unit), -12288.0, sum);
  let rounded = select(x * 1.7014118e38, near, abs(x) < 65520.0);
  return bitcast<f32>((bits & 0x80000000u) | bitcast<u32>(rounded));
}

// ±1 to ±2: a finite number, not 0, without its exponent.
fn significand(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  let shift = max(countLeadingZeros(bits & 0x7fffffffu), 8u) - 8u;
  return bitcast<f32>((bits & 0x80000000u) | 0x3f800000u | ((bits << shift) & 0x007fffffu));
}

fn exponent(x: f32) -> i32 {
  let magnitude = bitcast<u32>(x) & 0x7fffffffu;
  let shift = max(countLeadingZeros(magnitude), 8u) - 8u;
  return max(i32(magnitude >> 23u), 1i) - i32(shift) - 127i;
}

// √x, rounded to the nearest; by integers, as the quotient.
fn root(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) == 0u || bits == 0x7f800000u) {
    return x;
  }
  if (bits > 0x7f800000u) {
    return float_of_bits(0x7fc00000u);
  }
  let whole = whole_significand(x);
  let is_odd = (exponent(x) & 1i) == 1i;
  let square = whole << select(23u, 24u, is_odd);
  // The root of that, from 2²³ to 2²⁴, and what its own square lacks; the low 32 bits tell that, as above.
  var times = u32(sqrt(f32(whole) * select(1.0, 2.0, is_odd) / 8388608.0) * 8388608.0);
  times += u32(i32(round(f32(i32(square - times * times)) / (2.0 * f32(times)))));
  let lacking = i32(square - times * times);
  if (lacking > i32(times)) {
    times += 1u;
  } else if (lacking <= -i32(times)) {
    times -= 1u;
  }
  return bitcast<f32>((u32((exponent(x) >> 1u) + 127i) << 23u) + (times - 0x00800000u));
}

// Rounded steps plus the zero point, as an integer from lowest to highest of at most 8 bits; 0 for NaN.
fn quantized_8(steps: f32, zero_point: i32, lowest: i32, highest: i32) -> i32 {
  let total = i32(clamp(steps, -1000.0, 1000.0)) + zero_point;
  return select(clamp(total, lowest, highest), 0i, is_nan(steps));
}

// The same in 32 bits; in halves of 16 bits, which do not overflow.
fn quantized_i32(steps: f32, zero_point: i32) -> i32 {
  if (is_nan(steps)) {
    return 0i;
  }
  let bounded = clamp(steps, -8589934592.0, 8589934592.0);
  let high = floor(bounded / 65536.0);
  let low = i32(bounded - high * 65536.0) + (zero_point & 0xffffi);
  let total = i32(high) + (zero_point >> 16u) + (low >> 16u);
  if (total < -32768i) {
    return -2147483647i - 1i;
  }
  return select((total << 16u) | (low & 0xffffi), 2147483647i, total > 32767i);
}

fn quantized_u32(steps: f32, zero_point: u32) -> u32 {
  if (is_nan(steps)) {
    return 0u;
  }
  let bounded = clamp(steps, -8589934592.0, 8589934592.0);
  let high = floor(bounded / 65536.0);
  let low = i32(bounded - high * 65536.0) + i32(zero_point & 0xffffu);
  let total = i32(high) + i32(zero_point >> 16u) + (low >> 16u);
  if (total < 0i) {
    return 0u;
  }
  return select((u32(total) << 16u) | (u32(low) & 0xffffu), 4294967295u, total > 65535i);
}
