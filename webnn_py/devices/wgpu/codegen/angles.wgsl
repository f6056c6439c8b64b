// Sine, cosine and tangent of every float: within 2 units of float32's last place.

// The remainder of x to the nearest multiple of π/2, as a high and a low part, and which multiple it is, modulo 4.
fn angle(x: f32) -> vec3<f32> {
  if (abs(x) > 100.0) {
    return large_angle(x);
  }
  // π/2 in three pieces: the products of the first two are exact.
  let n = round(x * 0.63661975);
  let rest = (x - n * 1.5707931518554688) - n * 3.1749368645250797e-6;
  let high = rest - n * 2.5633440682570896e-12;
  let low = (rest - high) - n * 2.5633440682570896e-12;
  return vec3<f32>(high, low, f32(i32(n) & 3i));
}

// The same for large x, in integers: the bits of 2/π that matter, times the significand, modulo 4.
fn large_angle(x: f32) -> vec3<f32> {
  let bits = bitcast<u32>(x) & 0x7fffffffu;
  if (bits >= 0x7f800000u) {
    return vec3<f32>(float_of_bits(0x7fc00000u), 0.0, 0.0);
  }
  let first = (bits >> 23u) - 120u;
  let m = (bits & 0x007fffffu) | 0x00800000u;
  let low = product(m, bits_of_two_over_pi(first + 64u));
  let middle = product(m, bits_of_two_over_pi(first + 32u));
  let middle_sum = middle.x + low.y;
  let carry = middle.y + select(0u, 1u, middle_sum < middle.x);
  let top = m * bits_of_two_over_pi(first) + carry;
  // Two bits of the quadrant, then 62 of the fraction, of which what is above a half counts from the next one down.
  let negative = (top & 0x20000000u) != 0u;
  let quadrant = ((top >> 30u) + select(0u, 1u, negative)) & 3u;
  let flip = select(0u, 0xffffffffu, negative);
  var high = ((top << 2u) | (middle_sum >> 30u)) ^ flip;
  var lower = ((middle_sum << 2u) | (low.x >> 30u)) ^ flip;
  let shift = min(countLeadingZeros(high), 31u);
  if (shift > 0u) {
    high = (high << shift) | (lower >> (32u - shift));
    lower = lower << shift;
  }
  let unit = bitcast<f32>((127u - 32u - shift) << 23u);
  let fraction = f32(high & 0xffffff00u) * unit;
  let fraction_low = f32(((high & 0xffu) << 16u) | (lower >> 16u)) * unit * 0.0000152587890625;
  let sign = select(1.0, -1.0, negative != (x < 0.0));
  let remainder_high = fraction * 1.5707964;
  let remainder_low = fraction_low * 1.5707964 - fraction * 4.371139e-8 - residual(remainder_high, fraction, 1.5707964);
  let counted = select(quadrant, (4u - quadrant) & 3u, x < 0.0);
  return vec3<f32>(sign * remainder_high, sign * remainder_low, f32(counted));
}

// 32 bits of 2/π, of which the first one counts 2³¹ / 2ᶠⁱʳˢᵗ.
fn bits_of_two_over_pi(first: u32) -> u32 {
  let shift = first & 31u;
  let high = word_of_two_over_pi(first >> 5u) << shift;
  return select(high | (word_of_two_over_pi((first >> 5u) + 1u) >> (32u - shift)), high, shift == 0u);
}

fn word_of_two_over_pi(number: u32) -> u32 {
  switch (number) {
    case 1u: { return 0xa2f9836eu; }
    case 2u: { return 0x4e441529u; }
    case 3u: { return 0xfc2757d1u; }
    case 4u: { return 0xf534ddc0u; }
    case 5u: { return 0xdb629599u; }
    case 6u: { return 0x3c439041u; }
    case 7u: { return 0xfe5163abu; }
    default: { return 0u; }
  }
}

// a · b in 64 bits, the low ones first.
fn product(a: u32, b: u32) -> vec2<u32> {
  let low = (a & 0xffffu) * (b & 0xffffu);
  let middle = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
  let other = (a & 0xffffu) * (b >> 16u) + (middle & 0xffffu);
  return vec2<u32>((other << 16u) | (low & 0xffffu), (a >> 16u) * (b >> 16u) + (middle >> 16u) + (other >> 16u));
}

fn sin_of_remainder(a: vec3<f32>) -> f32 {
  let z = a.x * a.x;
  let p = -0.16666655 + z * (0.008332189 + z * -0.00019518188);
  return a.x + (a.x * z * p + a.y * (1.0 - 0.5 * z));
}

fn cos_of_remainder(a: vec3<f32>) -> f32 {
  let z = a.x * a.x;
  return (1.0 - 0.5 * z) + (z * z * (0.041666646 + z * (-0.0013887301 + z * 0.00002443066)) - a.x * a.y);
}

fn sin_f32(x: f32) -> f32 {
  let a = angle(x);
  let quadrant = u32(a.z);
  let y = select(sin_of_remainder(a), cos_of_remainder(a), (quadrant & 1u) == 1u);
  return select(y, -y, quadrant >= 2u);
}

fn cos_f32(x: f32) -> f32 {
  let a = angle(x);
  let quadrant = u32(a.z);
  let y = select(cos_of_remainder(a), sin_of_remainder(a), (quadrant & 1u) == 1u);
  return select(y, -y, quadrant == 1u || quadrant == 2u);
}

fn tan_f32(x: f32) -> f32 {
  let a = angle(x);
  let z = a.x * a.x;
  let high = 0.021240385 + z * (0.010940216 + z * (-0.00003869965 + z * 0.0044378354));
  let p = 0.33333352 + z * (0.13332585 + z * (0.05406838 + z * high));
  let y = a.x + (a.x * z * p + a.y * (1.0 + z));
  if ((u32(a.z) & 1u) == 0u) {
    return y;
  }
  return quotient(-1.0, y);
}
