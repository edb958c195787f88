/* The part of Foundation that a binding of Metal meets. */
#ifndef LILY_DOUBLE_FOUNDATION_H
#define LILY_DOUBLE_FOUNDATION_H

#include <objc/objc.h>
#include <objc/runtime.h>

#include "double.h"

typedef unsigned long NSUInteger;
typedef long NSInteger;
typedef struct {
  NSUInteger location, length;
} NSRange;
typedef struct {
  NSInteger majorVersion, minorVersion, patchVersion;
} NSOperatingSystemVersion;

__attribute__((objc_root_class)) @interface NSObject {
 @public
  Class isa;
  long references;
  const char *kind; /* class name, kept after the release */
}
+ (id)alloc;
+ (id)new;
- (id)init;
- (id)retain;
- (void)release;
- (id)autorelease;
- (void)dealloc;
- (BOOL)respondsToSelector:(SEL)selector;
@end

@interface NSString : NSObject {
 @public
  char *text;
}
+ (NSString *)withText:(const char *)text; /* autoreleased */
@end

@interface NSError : NSObject {
 @public
  NSInteger code;
  NSString *domain, *description;
}
+ (NSError *)withFailure:(const struct failure *)failure; /* autoreleased */
+ (NSError *)withDomain:(const char *)domain code:(NSInteger)code text:(const char *)text;
@end

@interface NSArray : NSObject {
 @public
  id *items;
  NSUInteger size;
}
- (void)add:(id)object;
- (void)removeAt:(NSUInteger)index;
@end

/* False, with a violation, if the object is nil or released. */
bool is_alive(id object, const char *doing);

#endif
