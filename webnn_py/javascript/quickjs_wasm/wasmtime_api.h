/* The part of the C API of wasmtime that is called; at the end, what more of quickjs-ng WebAssembly takes. */
typedef struct wasm_config_t wasm_config_t;
typedef struct wasm_engine_t wasm_engine_t;
typedef struct wasmtime_store wasmtime_store_t;
typedef struct wasmtime_context wasmtime_context_t;
typedef struct wasmtime_error wasmtime_error_t;
typedef struct wasm_trap_t wasm_trap_t;
typedef struct wasmtime_module wasmtime_module_t;
typedef struct wasmtime_caller wasmtime_caller_t;
typedef struct wasmtime_sharedmemory wasmtime_sharedmemory_t;
typedef struct wasm_valtype_t wasm_valtype_t;
typedef struct wasm_functype_t wasm_functype_t;
typedef struct wasm_globaltype_t wasm_globaltype_t;
typedef struct wasm_tabletype_t wasm_tabletype_t;
typedef struct wasm_memorytype_t wasm_memorytype_t;
typedef struct wasm_externtype_t wasm_externtype_t;
typedef struct wasm_importtype_t wasm_importtype_t;
typedef struct wasm_exporttype_t wasm_exporttype_t;
typedef struct { size_t size; char *data; } wasm_byte_vec_t;
typedef struct { size_t size; wasm_valtype_t **data; } wasm_valtype_vec_t;
typedef struct { size_t size; wasm_importtype_t **data; } wasm_importtype_vec_t;
typedef struct { size_t size; wasm_exporttype_t **data; } wasm_exporttype_vec_t;
typedef struct { uint32_t min; uint32_t max; } wasm_limits_t;
typedef struct { uint64_t store_id; void *place; } wasmtime_func_t;
typedef struct { struct { uint64_t store_id; uint32_t first; } one; uint32_t second; } wasmtime_table_t;
typedef struct { struct { uint64_t store_id; uint32_t first; } one; uint32_t second; } wasmtime_memory_t;
typedef struct { uint64_t store_id; uint32_t first; uint32_t second; uint32_t third; } wasmtime_global_t;
typedef struct { uint64_t store_id; size_t place; } wasmtime_instance_t;
typedef struct {
  uint8_t kind;
  union {
    wasmtime_func_t function; wasmtime_global_t variable; wasmtime_table_t table; wasmtime_memory_t memory;
    wasmtime_sharedmemory_t *shared;
  } of;
} wasmtime_extern_t;
typedef struct {
  uint8_t kind;
  union { int32_t i32; int64_t i64; float f32; double f64; wasmtime_func_t function; uint64_t widest[3]; } of;
} wasmtime_val_t;
typedef wasm_trap_t *wasmtime_func_callback_t(void *, wasmtime_caller_t *, const wasmtime_val_t *, size_t,
                                              wasmtime_val_t *, size_t);
wasm_config_t *wasm_config_new(void);
void wasmtime_config_strategy_set(wasm_config_t *, uint8_t);
void wasmtime_config_cranelift_opt_level_set(wasm_config_t *, uint8_t);
void wasmtime_config_wasm_threads_set(wasm_config_t *, _Bool);
void wasmtime_config_shared_memory_set(wasm_config_t *, _Bool);
void wasmtime_config_memory_may_move_set(wasm_config_t *, _Bool);
void wasmtime_config_max_wasm_stack_set(wasm_config_t *, size_t);
wasm_engine_t *wasm_engine_new_with_config(wasm_config_t *);
wasmtime_store_t *wasmtime_store_new(wasm_engine_t *, void *, void *);
wasmtime_context_t *wasmtime_store_context(wasmtime_store_t *);
void wasmtime_store_limiter(wasmtime_store_t *, int64_t, int64_t, int64_t, int64_t, int64_t);
void wasm_byte_vec_delete(wasm_byte_vec_t *);
void wasmtime_error_message(const wasmtime_error_t *, wasm_byte_vec_t *);
void wasmtime_error_delete(wasmtime_error_t *);
void wasm_trap_message(const wasm_trap_t *, wasm_byte_vec_t *);
void wasm_trap_delete(wasm_trap_t *);
wasm_trap_t *wasmtime_trap_new(const char *, size_t);
wasmtime_error_t *wasmtime_module_new(wasm_engine_t *, const uint8_t *, size_t, wasmtime_module_t **);
wasmtime_error_t *wasmtime_module_validate(wasm_engine_t *, const uint8_t *, size_t);
void wasmtime_module_delete(wasmtime_module_t *);
void wasmtime_module_imports(const wasmtime_module_t *, wasm_importtype_vec_t *);
void wasmtime_module_exports(const wasmtime_module_t *, wasm_exporttype_vec_t *);
void wasm_importtype_vec_delete(wasm_importtype_vec_t *);
void wasm_exporttype_vec_delete(wasm_exporttype_vec_t *);
const wasm_byte_vec_t *wasm_importtype_module(const wasm_importtype_t *);
const wasm_byte_vec_t *wasm_importtype_name(const wasm_importtype_t *);
const wasm_externtype_t *wasm_importtype_type(const wasm_importtype_t *);
const wasm_byte_vec_t *wasm_exporttype_name(const wasm_exporttype_t *);
const wasm_externtype_t *wasm_exporttype_type(const wasm_exporttype_t *);
uint8_t wasm_externtype_kind(const wasm_externtype_t *);
const wasm_functype_t *wasm_externtype_as_functype_const(const wasm_externtype_t *);
const wasm_globaltype_t *wasm_externtype_as_globaltype_const(const wasm_externtype_t *);
const wasm_valtype_vec_t *wasm_functype_params(const wasm_functype_t *);
const wasm_valtype_vec_t *wasm_functype_results(const wasm_functype_t *);
void wasm_functype_delete(wasm_functype_t *);
wasm_valtype_t *wasm_valtype_new(uint8_t);
uint8_t wasm_valtype_kind(const wasm_valtype_t *);
wasm_globaltype_t *wasm_globaltype_new(wasm_valtype_t *, uint8_t);
const wasm_valtype_t *wasm_globaltype_content(const wasm_globaltype_t *);
uint8_t wasm_globaltype_mutability(const wasm_globaltype_t *);
void wasm_globaltype_delete(wasm_globaltype_t *);
wasm_tabletype_t *wasm_tabletype_new(wasm_valtype_t *, const wasm_limits_t *);
const wasm_valtype_t *wasm_tabletype_element(const wasm_tabletype_t *);
void wasm_tabletype_delete(wasm_tabletype_t *);
wasmtime_error_t *wasmtime_memorytype_new(uint64_t, _Bool, uint64_t, _Bool, _Bool, uint8_t, wasm_memorytype_t **);
void wasm_memorytype_delete(wasm_memorytype_t *);
wasmtime_error_t *wasmtime_instance_new(wasmtime_context_t *, const wasmtime_module_t *, const wasmtime_extern_t *,
                                        size_t, wasmtime_instance_t *, wasm_trap_t **);
_Bool wasmtime_instance_export_nth(wasmtime_context_t *, const wasmtime_instance_t *, size_t, char **, size_t *,
                                   wasmtime_extern_t *);
void wasmtime_func_new(wasmtime_context_t *, const wasm_functype_t *, wasmtime_func_callback_t *, void *, void *,
                       wasmtime_func_t *);
wasm_functype_t *wasmtime_func_type(wasmtime_context_t *, const wasmtime_func_t *);
wasmtime_error_t *wasmtime_func_call(wasmtime_context_t *, const wasmtime_func_t *, const wasmtime_val_t *, size_t,
                                     wasmtime_val_t *, size_t, wasm_trap_t **);
wasmtime_error_t *wasmtime_memory_new(wasmtime_context_t *, const wasm_memorytype_t *, wasmtime_memory_t *);
uint8_t *wasmtime_memory_data(wasmtime_context_t *, const wasmtime_memory_t *);
size_t wasmtime_memory_data_size(wasmtime_context_t *, const wasmtime_memory_t *);
wasmtime_error_t *wasmtime_memory_grow(wasmtime_context_t *, const wasmtime_memory_t *, uint64_t, uint64_t *);
wasmtime_error_t *wasmtime_sharedmemory_new(wasm_engine_t *, const wasm_memorytype_t *, wasmtime_sharedmemory_t **);
uint8_t *wasmtime_sharedmemory_data(const wasmtime_sharedmemory_t *);
size_t wasmtime_sharedmemory_data_size(const wasmtime_sharedmemory_t *);
wasmtime_error_t *wasmtime_sharedmemory_grow(const wasmtime_sharedmemory_t *, uint64_t, uint64_t *);
wasmtime_error_t *wasmtime_table_new(wasmtime_context_t *, const wasm_tabletype_t *, const wasmtime_val_t *,
                                     wasmtime_table_t *);
wasm_tabletype_t *wasmtime_table_type(wasmtime_context_t *, const wasmtime_table_t *);
_Bool wasmtime_table_get(wasmtime_context_t *, const wasmtime_table_t *, uint64_t, wasmtime_val_t *);
wasmtime_error_t *wasmtime_table_set(wasmtime_context_t *, const wasmtime_table_t *, uint64_t, const wasmtime_val_t *);
uint64_t wasmtime_table_size(wasmtime_context_t *, const wasmtime_table_t *);
wasmtime_error_t *wasmtime_table_grow(wasmtime_context_t *, const wasmtime_table_t *, uint64_t, const wasmtime_val_t *,
                                      uint64_t *);
wasmtime_error_t *wasmtime_global_new(wasmtime_context_t *, const wasm_globaltype_t *, const wasmtime_val_t *,
                                      wasmtime_global_t *);
wasm_globaltype_t *wasmtime_global_type(wasmtime_context_t *, const wasmtime_global_t *);
void wasmtime_global_get(wasmtime_context_t *, const wasmtime_global_t *, wasmtime_val_t *);
wasmtime_error_t *wasmtime_global_set(wasmtime_context_t *, const wasmtime_global_t *, const wasmtime_val_t *);
typedef JSValue JSCFunctionData(JSContext *, JSValue, int, JSValue *, int, JSValue *);
JSValue JS_NewCFunctionData2(JSContext *, JSCFunctionData *, const char *, int, int, int, JSValue *);
JSValue JS_NewBigInt64(JSContext *, int64_t);
JSValue JS_NewArrayBuffer(JSContext *, uint8_t *, size_t, size_t, void *, void *, _Bool);
void JS_DetachArrayBuffer(JSContext *, JSValue);
int JS_ToInt32(JSContext *, int32_t *, JSValue);
int JS_ToBigInt64(JSContext *, int64_t *, JSValue);
int JS_ToFloat64(JSContext *, double *, JSValue);
JSValue JS_NewObject(JSContext *);
int JS_SetPropertyStr(JSContext *, JSValue, const char *, JSValue);
JSValue JS_GetPropertyUint32(JSContext *, JSValue, uint32_t);
_Bool JS_IsFunction(JSContext *, JSValue);
