// Powers, logarithms and what is made of them, as exact as math.wgsl says.

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

// e to the power high + low, for high from -106 to 89 and a small low.
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
    return float_of_bits(0xff800000u);
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

// The same for a float16, which is 1 from 2.6 on: an odd polynomial, off by 6e-6 of the result; a float16 is by 2.4e-4.
fn erf_half(x: f32) -> f32 {
  let t = clamp(x, -2.65, 2.65);
  let z = t * t;
  let high = -0.000010694822 + z * (7.7293322e-7 + z * (-3.5071885e-8 + z * 7.3977247e-10));
  let middle = 0.005176837 + z * (-0.0008225761 + z * (0.00010632293 + z * high));
  let p = 1.1283791 + z * (-0.3761229 + z * (0.11281891 + z * (-0.02682489 + z * middle)));
  return select(t * p, x, is_nan(x));
}

// ½ · x · (1 + erf(x / √2)) as max(0, x) - |x| · Φ(-|x|), which nothing cancels in. Φ(-t) is exp(-t²/2) times a
// polynomial in t / (t + 2.9): W. J. Cody's and J. Laframboise's form of the normal distribution's tail. From 14.43 on
// the power is 0, and so is the tail.
fn gelu_f32(x: f32) -> f32 {
  let t = min(abs(x), 14.5);
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
    return select(0.0, float_of_bits(0x7f800000u), f > 0.0);
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
    return float_of_bits(0x7fc00000u);
  }
  let is_whole = y_magnitude >= 0x4b000000u || trunc(y) == y;
  let is_odd = y_magnitude < 0x4b800000u && is_whole && (i32(y) & 1i) == 1i;
  let y_negative = bitcast<i32>(y) < 0i;
  let x_negative = bitcast<i32>(x) < 0i;
  var power: f32;
  if (x_magnitude == 0u || x_magnitude == 0x7f800000u) {
    power = select(0.0, float_of_bits(0x7f800000u), (x_magnitude == 0u) == y_negative);
  } else if (x_negative && !is_whole) {
    return float_of_bits(0x7fc00000u);
  } else if (x_magnitude == 0x3f800000u) {
    power = 1.0;
  } else {
    power = power_of_positive(bitcast<f32>(x_magnitude), y);
  }
  return select(power, -power, x_negative && is_odd);
}
