#if __METAL_VERSION__ < 400
#error "tensor operations need Metal 4.0"
#endif
