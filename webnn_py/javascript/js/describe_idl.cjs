// Describes an API as data: node describe_idl.cjs PARSER, where PARSER is webidl2.js, with IDL as the standard input. Writes
// interfaces, dictionaries and enumerations as JSON.
//
// A type is {kind}, with `name` for enumerations, dictionaries and interfaces, `of` for what sequences, frozen
// arrays, promises, records and unions hold, `key` for records, `enforceRange` for integers. Typedefs are resolved.
'use strict';

const fs = require('node:fs');
const path = require('node:path');

const BUFFER_SOURCES = ['AllowSharedBufferSource', 'BufferSource', 'ArrayBufferView'];
const PLAIN = ['undefined', 'boolean', 'long', 'unsigned long', 'unsigned long long', 'float', 'double',
               'unrestricted double', 'bigint', 'DOMString', 'USVString', 'ArrayBuffer'];

function collect(definitions) {
  const found = {typedefs: {}, enums: {}, dictionaries: {}, interfaces: {}, mixins: {}, includes: []};
  for (const definition of definitions) {
    const {type, name} = definition;
    if (type === 'typedef') found.typedefs[name] = definition.idlType;
    if (type === 'enum') found.enums[name] = definition.values.map((value) => value.value);
    if (type === 'includes') found.includes.push(definition);
    const kind = {'dictionary': 'dictionaries', 'interface': 'interfaces', 'interface mixin': 'mixins'}[type];
    if (kind === undefined) continue;
    found[kind][name] ??= {parent: null, members: []};
    found[kind][name].parent ??= definition.inheritance;
    found[kind][name].members.push(...definition.members);
  }
  return found;
}

function describer(found) {
  const enforced = (attributes) => attributes.some((attribute) => attribute.name === 'EnforceRange');

  function describeType(idlType, attributes = []) {
    const all = [...attributes, ...idlType.extAttrs];
    if (idlType.union) return {kind: 'union', of: idlType.idlType.map((member) => describeType(member))};
    const inner = () => idlType.idlType.map((member) => describeType(member));
    switch (idlType.generic) {
      case 'sequence': return {kind: 'sequence', of: inner()[0]};
      case 'FrozenArray': return {kind: 'frozenArray', of: inner()[0]};
      case 'Promise': return {kind: 'promise', of: inner()[0]};
      case 'record': return {kind: 'record', key: inner()[0], of: inner()[1]};
      default: return describeName(idlType.idlType, all);
    }
  }

  function describeName(name, attributes) {
    if (PLAIN.includes(name)) return enforced(attributes) ? {kind: name, enforceRange: true} : {kind: name};
    if (BUFFER_SOURCES.includes(name)) return {kind: 'bufferSource'};
    if (name in found.typedefs) return describeType(found.typedefs[name]);
    if (name in found.enums) return {kind: 'enum', name};
    if (name in found.dictionaries) return {kind: 'dictionary', name};
    return {kind: 'interface', name};
  }

  const withDefault = (entry, value) => {
    if (!value) return entry;
    const plain = {
      string: () => value.value,
      number: () => Number(value.value),
      boolean: () => value.value,
      sequence: () => [],
      dictionary: () => ({}),
      null: () => null,
    }[value.type];
    return {...entry, default: plain()};
  };

  const describeArgument = (argument) => withDefault({
    name: argument.name,
    type: describeType(argument.idlType, argument.extAttrs),
    optional: argument.optional,
  }, argument.default);

  const describeMember = (member) => withDefault({
    name: member.name,
    type: describeType(member.idlType, member.extAttrs),
    required: member.required,
  }, member.default);

  function describeInterface({members}) {
    const attributes = members.filter((member) => member.type === 'attribute')
        .map((member) => ({name: member.name, type: describeType(member.idlType, member.extAttrs)}));
    const operations = new Map();
    for (const member of members.filter((member) => member.type === 'operation')) {
      if (!operations.has(member.name)) operations.set(member.name, {name: member.name, overloads: []});
      operations.get(member.name).overloads.push({
        returns: describeType(member.idlType),
        arguments: member.arguments.map(describeArgument),
      });
    }
    const constructors = members.filter((member) => member.type === 'constructor')
        .map((member) => ({arguments: member.arguments.map(describeArgument)}));
    return {
      constructors: constructors.length > 0 ? constructors : null,
      attributes,
      operations: [...operations.values()],
    };
  }
  return {describeInterface, describeMember};
}

const mapValues = (object, change) =>
    Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));

function describe(definitions) {
  const found = collect(definitions);
  const {describeInterface, describeMember} = describer(found);
  const navigator = found.includes.filter((include) => include.target === 'Navigator')
      .flatMap((include) => describeInterface(found.mixins[include.includes]).attributes);
  return {
    enums: found.enums,
    dictionaries: mapValues(found.dictionaries, ({parent, members}) =>
      ({parent: parent ?? null, members: members.map(describeMember)})),
    interfaces: mapValues(found.interfaces, describeInterface),
    navigator,
  };
}

try {
  const WebIDL2 = require(path.resolve(process.argv[2]));
  process.stdout.write(JSON.stringify(describe(WebIDL2.parse(fs.readFileSync(0, 'utf8')))));
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
