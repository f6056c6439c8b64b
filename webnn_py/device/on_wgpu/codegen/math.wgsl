// Functions that WGSL has not, or that adapters compute too coarsely: within 2 units of float32's last place (gelu: 8),
// for every float. Adapters need not fuse multiply and add, and compilers may drop a difference that would be zero in
// exact arithmetic; so where low parts matter, high parts are cut off by their bits.

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
    return bitcast<f32>(0x7fc00000u);
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

// x, rounded to float16 as by half_bits: the last bit of a sum with 1½ · 2¹³ · 2ᵉ is the last bit of a float16 between 2ᵉ and
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
    return bitcast<f32>(0x7fc00000u);
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

// eˣ - 1 for |x| ≤ ln 2 / 2.
fn expm1_near_zero(x: f32) -> f32 {
  let p = 0.5 + x * (0.16666666 + x * (0.041666478 + x * (0.008333537 + x * (0.0013934125 + x * 0.00019772114))));
  return x + x * x * p;
}

// n · ln 2 is nearest to x, of all integers n.
fn halvings(x: f32) -> f32 {
  return round(x * 1.44269504);
}

// What is left of x then; n · 0.693359375 is exact.
fn without_halvings(x: f32, n: f32) -> f32 {
  return (x - n * 0.693359375) + n * 0.00021219444;
}

// eˣ.
fn exp_f32(x: f32) -> f32 {
  return select(exp_of_sum(clamp(x, -104.0, 89.0), 0.0), x, is_nan(x));
}

// e to the power high + low, for high from -104 to 89 and a small low.
fn exp_of_sum(high: f32, low: f32) -> f32 {
  let n = halvings(high);
  let r = without_halvings(high, n) + low;
  let p = 0.5 + r * (0.16666508 + r * (0.041666385 + r * (0.008370232 + r * 0.0013942344)));
  return scaled(1.0 + (r + r * r * p), i32(n));
}

// eˣ for x from -87 to 88, where powers of two are normal numbers: a third fewer instructions.
fn exp_of_moderate(x: f32) -> f32 {
  let n = halvings(x);
  let r = without_halvings(x, n);
  let p = 0.5 + r * (0.16666508 + r * (0.041666385 + r * (0.008370232 + r * 0.0013942344)));
  return (1.0 + (r + r * r * p)) * bitcast<f32>((i32(n) + 127i) << 23u);
}

// eˣ - 1 for x ≤ 0.
fn expm1_of_negative(x: f32) -> f32 {
  let y = max(x, -20.0);
  let n = halvings(y);
  let power = scaled(1.0, i32(n));
  return select(power * expm1_near_zero(without_halvings(y, n)) + (power - 1.0), x, is_nan(x));
}

// ln x.
fn log_f32(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  if (bits >= 0x7f800000u) {
    let of_negative = select(0x7fc00000u, 0xff800000u, bits == 0x80000000u);
    return bitcast<f32>(select(bits, of_negative, bits > 0x7f800000u && !is_nan(x)));
  }
  if (bits == 0u) {
    return bitcast<f32>(0xff800000u);
  }
  // x = 2ᵏ · (1 + f), with 1 + f from √½ to √2.
  let m = significand(x);
  let above = bitcast<u32>(m) > 0x3fb504f3u;
  let k = f32(exponent(x) + select(0i, 1i, above));
  let f = select(m, 0.5 * m, above) - 1.0;
  let s = f / (2.0 + f);
  let z = s * s;
  let p = z * (0.6666666 + z * (0.40000972 + z * (0.28498772 + z * 0.24279755)));
  let half_square = 0.5 * f * f;
  return k * 0.69313812256 - ((half_square - (s * (half_square + p) + k * 9.0580006145e-6)) - f);
}

// ln(1 + x) for x from 0 to 1.
fn log1p_of_unit(x: f32) -> f32 {
  let s = x / (2.0 + x);
  let z = s * s;
  return 2.0 * s + s * z * (0.66666675 + z * (0.3999895 + z * (0.28615212 + z * (0.21443886 + z * 0.24245256))));
}

fn sigmoid_f32(x: f32) -> f32 {
  let power = exp_f32(-abs(x));
  return select(1.0, power, x < 0.0) / (1.0 + power);
}

fn tanh_f32(x: f32) -> f32 {
  let magnitude = abs(x);
  if (magnitude < 0.5625) {
    let z = x * x;
    let p = -0.33333313 + z * (0.1333244 + z * (-0.05383624 + z * (0.021002807 + z * -0.0061734547)));
    return x + x * z * p;
  }
  let y = 1.0 - 2.0 / (exp_f32(2.0 * min(magnitude, 16.0)) + 1.0);
  return select(select(y, -y, x < 0.0), x, is_nan(x));
}

fn erf_f32(x: f32) -> f32 {
  let t = min(abs(x), 4.0);
  if (t < 1.0) {
    let z = x * x;
    let p = 0.112836182 + z * (-0.026855126 + z * (0.0051907338 + z * (-0.0008030762 + z * 0.00007920368)));
    return x + x * (0.12837917 + z * (-0.3761263 + z * p));
  }
  let p = -0.10841210 + t * (0.02520408 + t * (-0.0042029782 + t * (0.0004410092 + t * -0.000021658447)));
  let y = 1.0 - exp_of_moderate(0.00018742772 + t * (-1.1295755 + t * (-0.6332258 + t * p)));
  return select(select(y, -y, x < 0.0), x, is_nan(x));
}

// The same for a float16, which is 1 from 2.6 on: an odd polynomial, off by 6e-6 of the result, where 5e-4 are a float16's.
fn erf_half(x: f32) -> f32 {
  let t = clamp(x, -2.65, 2.65);
  let z = t * t;
  let high = -0.000010694822 + z * (7.7293322e-7 + z * (-3.5071885e-8 + z * 7.3977247e-10));
  let middle = 0.005176837 + z * (-0.0008225761 + z * (0.00010632293 + z * high));
  let p = 1.1283791 + z * (-0.3761229 + z * (0.11281891 + z * (-0.02682489 + z * middle)));
  return select(t * p, x, is_nan(x));
}

// ½ · x · (1 + erf(x / √2)) as max(0, x) - |x| · Φ(-|x|), which nothing cancels in. Φ(-t) is exp(-t²/2) times a
// polynomial in t / (t + 2.9): W. J. Cody's and J. Laframboise's form of the normal distribution's tail.
fn gelu_f32(x: f32) -> f32 {
  let t = min(abs(x), 14.25);
  let t_head = head(t);
  let ratio = t / (t + 2.9);
  let high = -0.06636693779 + ratio * (-0.136329741 + ratio * (0.2335817304 + ratio * -0.08141066746));
  let middle = 0.8368921659 + ratio * (0.2732136655 + ratio * (-0.2055801682 + ratio * high));
  let p = 1.450000015 + ratio * (-1.905101554 + ratio * middle);
  let tail = p * ratio * exp_of_sum(-0.5 * t_head * t_head, -0.5 * (t - t_head) * (t + t_head));
  return select(max(x, 0.0) - tail, x, is_nan(x));
}

// log₂ of a positive, finite x: 12 bits, and the rest. After fdlibm's e_powf, with one interval instead of two.
fn log2_parts(x: f32) -> vec2<f32> {
  let m = significand(x);
  let above = bitcast<u32>(m) > 0x3fb504f3u;
  let y = select(m, 0.5 * m, above);
  let n = f32(exponent(x) + select(0i, 1i, above));
  // s = (y - 1) / (y + 1) in two parts.
  let sum_head = head(y + 1.0);
  let sum_tail = y - (sum_head - 1.0);
  let s = (y - 1.0) / (y + 1.0);
  let s_head = head(s);
  let s_tail = (((y - 1.0) - s_head * sum_head) - s_head * sum_tail) / (y + 1.0);
  // ln y = ⅔ · s · (3 + s² + …) in two parts.
  let z = s * s;
  let p = z * z * (0.59999996 + z * (0.4285796 + z * (0.33269423 + z * 0.293392))) + s_tail * (s_head + s);
  let factor_head = head(3.0 + s_head * s_head + p);
  let factor_tail = p - ((factor_head - 3.0) - s_head * s_head);
  let exact = s_head * factor_head;
  let rest = s_tail * factor_head + factor_tail * s;
  let log_head = head(exact + rest);
  let log_tail = rest - (log_head - exact);
  // ⅔ / ln 2 in two parts, too.
  let high = 0.961669921875 * log_head;
  let low = 0.00012677205 * log_head + log_tail * 0.9617967;
  let result = head((high + low) + n);
  return vec2<f32>(result, low - ((result - n) - high));
}

// xʸ for positive, finite x and y that is not NaN.
fn power_of_positive(x: f32, y: f32) -> f32 {
  let bounded = clamp(y, -1e20, 1e20);
  let l = log2_parts(x);
  let y_head = head(bounded);
  let high = clamp(y_head * l.x, -1e6, 1e6);
  let low = clamp((bounded - y_head) * l.x + bounded * l.y, -1e6, 1e6);
  let n = clamp(round(high + low), -200.0, 200.0);
  let f = clamp((high - n) + low, -100.0, 100.0);
  if (f > 1.0 || f < -1.0) {
    return select(0.0, bitcast<f32>(0x7f800000u), f > 0.0);
  }
  let p_high = 0.0013336618 + f * (0.00015453302 + f * 0.000014692371);
  let p = 0.24022651 + f * (0.05550406 + f * (0.009618085 + f * p_high));
  return scaled(1.0 + (f * 0.6931471825 + f * f * p), i32(n));
}

// xʸ as C's pow has it.
fn pow_f32(x: f32, y: f32) -> f32 {
  let x_magnitude = bitcast<u32>(x) & 0x7fffffffu;
  let y_magnitude = bitcast<u32>(y) & 0x7fffffffu;
  if (y_magnitude == 0u || bitcast<u32>(x) == 0x3f800000u) {
    return 1.0;
  }
  if (is_nan(x) || is_nan(y)) {
    return bitcast<f32>(0x7fc00000u);
  }
  let is_whole = y_magnitude >= 0x4b000000u || trunc(y) == y;
  let is_odd = y_magnitude < 0x4b800000u && is_whole && (i32(y) & 1i) == 1i;
  let y_negative = bitcast<i32>(y) < 0i;
  let x_negative = bitcast<i32>(x) < 0i;
  var power: f32;
  if (x_magnitude == 0u || x_magnitude == 0x7f800000u) {
    power = select(0.0, bitcast<f32>(0x7f800000u), (x_magnitude == 0u) == y_negative);
  } else if (x_negative && !is_whole) {
    return bitcast<f32>(0x7fc00000u);
  } else if (x_magnitude == 0x3f800000u) {
    power = 1.0;
  } else {
    power = power_of_positive(bitcast<f32>(x_magnitude), y);
  }
  return select(power, -power, x_negative && is_odd);
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
