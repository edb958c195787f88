#include "foundation.h"

#include <objc/message.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- messages -------------------------------------------------------------------------------------------------- */

/* What a released object becomes: its memory stays until the reset, so that a late message is recognised. */
@interface Released : NSObject
@end
@implementation Released
@end

static Class released;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static NSObject **graveyard;
static long num_released, capacity_released;

static id answer_nil(id self, SEL selector) { return nil; }

static bool is_released(NSObject *object) { return object->isa == released; }

/* Called by objc_msgSend. */
IMP find_method(NSObject *receiver, SEL selector) {
  count(COUNT_MESSAGES, 1);
  if (is_released(receiver)) {
    violation("message %s to a released %s", sel_getName(selector), receiver->kind);
    return (IMP)answer_nil;
  }
  if (!class_respondsToSelector(object_getClass(receiver), selector)) {
    violation("%s has no method %s", class_getName(object_getClass(receiver)), sel_getName(selector));
    return (IMP)answer_nil;
  }
  return objc_msg_lookup(receiver, selector);
}

bool is_alive(id object, const char *doing) {
  if (!object) {
    violation("%s: the object is nil", doing);
    return false;
  }
  if (is_released(object)) {
    violation("%s: the %s was released", doing, ((NSObject *)object)->kind);
    return false;
  }
  return true;
}

void free_released_objects(void) {
  pthread_mutex_lock(&lock);
  for (long i = 0; i < num_released; i++) object_dispose(graveyard[i]);
  num_released = 0;
  pthread_mutex_unlock(&lock);
}

/* ---- pools ----------------------------------------------------------------------------------------------------- */

/* One stack a thread: a nil opens a pool, the objects of the pool follow. */
static __thread NSObject **stack;
static __thread long stack_size, stack_capacity;

static void push(NSObject *object) {
  if (stack_size == stack_capacity) {
    stack_capacity = stack_capacity ? stack_capacity * 2 : 256;
    stack = realloc(stack, (size_t)stack_capacity * sizeof *stack);
  }
  stack[stack_size++] = object;
}

void *objc_autoreleasePoolPush(void) {
  push(nil);
  return (void *)stack_size;
}

void objc_autoreleasePoolPop(void *token) {
  long end = (long)token;
  if (end < 1 || end > stack_size || stack[end - 1]) {
    violation("an autorelease pool is closed that is not open on this thread");
    return;
  }
  while (stack_size >= end) {
    NSObject *object = stack[--stack_size];
    if (object) [object release];
  }
}

long pool_depth(void) {
  long depth = 0;
  for (long i = 0; i < stack_size; i++) depth += stack[i] == nil;
  return depth;
}

id objc_retain(id object) {
  return is_alive(object, "retain") ? [object retain] : nil;
}

void objc_release(id object) {
  if (is_alive(object, "release")) [object release];
}

/* ---- objects --------------------------------------------------------------------------------------------------- */

@implementation NSObject
+ (void)initialize {
  released = objc_getClass("Released");
}
+ (id)alloc {
  NSObject *object = class_createInstance((Class)self, 0);
  object->references = 1;
  object->kind = class_getName((Class)self);
  count(COUNT_LIVE, 1);
  return object;
}
+ (id)new {
  return [[self alloc] init];
}
- (id)init {
  return self;
}
- (id)retain {
  __atomic_add_fetch(&references, 1, __ATOMIC_RELAXED);
  return self;
}
- (void)release {
  if (__atomic_sub_fetch(&references, 1, __ATOMIC_ACQ_REL) == 0) [self dealloc];
}
- (id)autorelease {
  if (stack_size == 0) violation("a %s is autoreleased without a pool and leaks", kind);
  push(self);
  return self;
}
- (void)dealloc {
  count(COUNT_LIVE, -1);
  pthread_mutex_lock(&lock);
  isa = released;
  if (num_released == capacity_released) {
    capacity_released = capacity_released ? capacity_released * 2 : 256;
    graveyard = realloc(graveyard, (size_t)capacity_released * sizeof *graveyard);
  }
  graveyard[num_released++] = self;
  pthread_mutex_unlock(&lock);
}
- (BOOL)respondsToSelector:(SEL)selector {
  return class_respondsToSelector(object_getClass(self), selector);
}
@end

@implementation NSString
+ (NSString *)withText:(const char *)text {
  NSString *string = [self new];
  string->text = strdup(text);
  return [string autorelease];
}
- (id)initWithBytes:(const void *)bytes length:(NSUInteger)length encoding:(NSUInteger)encoding {
  if (encoding != 4) violation("NSString: encoding %lu; the binding uses UTF-8 (4)", encoding);
  text = malloc(length + 1);
  memcpy(text, bytes, length);
  text[length] = 0;
  return self;
}
- (const char *)UTF8String {
  return text;
}
- (void)dealloc {
  free(text);
  [super dealloc];
}
@end

@implementation NSError
+ (NSError *)withDomain:(const char *)domain code:(NSInteger)code text:(const char *)text {
  NSError *error = [self new];
  error->code = code;
  error->domain = [[NSString withText:domain] retain];
  error->description = [[NSString withText:text] retain];
  return [error autorelease];
}
+ (NSError *)withFailure:(const struct failure *)failure {
  return [self withDomain:failure->domain code:failure->code text:failure->text];
}
- (NSInteger)code {
  return code;
}
- (NSString *)domain {
  return domain;
}
- (NSString *)localizedDescription {
  return description;
}
- (void)dealloc {
  [domain release];
  [description release];
  [super dealloc];
}
@end

@implementation NSArray
- (void)add:(id)object {
  items = realloc(items, (size + 1) * sizeof *items);
  items[size++] = [object retain];
}
- (void)removeAt:(NSUInteger)index {
  [items[index] release];
  memmove(items + index, items + index + 1, (--size - index) * sizeof *items);
}
- (NSUInteger)count {
  return size;
}
- (id)objectAtIndex:(NSUInteger)index {
  return index < size ? items[index] : nil;
}
- (void)dealloc {
  for (NSUInteger i = 0; i < size; i++) [items[i] release];
  free(items);
  [super dealloc];
}
@end

@interface NSProcessInfo : NSObject
@end
@implementation NSProcessInfo
+ (NSProcessInfo *)processInfo {
  return [[self new] autorelease];
}
- (BOOL)isOperatingSystemAtLeastVersion:(NSOperatingSystemVersion)version {
  return setting(SET_MACOS) >= version.majorVersion;
}
@end

const char *double_method_types(const char *class_name, const char *selector) {
  bool of_class = *class_name == '+';
  const char *name = class_name + of_class;
  Class class = objc_getClass(name);
  if (!class) {
    char own[128]; /* MTLDevice is a protocol; the double's class is DoubleDevice */
    snprintf(own, sizeof own, "Double%s", name + 3);
    class = objc_getClass(own);
  }
  if (!class) return NULL;
  SEL sel = sel_registerName(selector);
  struct objc_method *method = of_class ? class_getClassMethod(class, sel) : class_getInstanceMethod(class, sel);
  return method ? method_getTypeEncoding(method) : NULL;
}
