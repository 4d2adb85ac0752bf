package column

import "syscall"

// Reserve gives an arena with room for n bytes that is no memory yet: the system
// gives pages as they are first written, outside of Go's heap. A large window then
// costs its own size, where a slice that grows costs the old and the new one, and
// the heap keeps the gaps. Where the system reserves nothing, and for
// what does not fit, the arena is an ordinary one. Release gives the pages back.
func Reserve(n int) Arena {
	room, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
	if err != nil {
		return Arena{}
	}
	return Arena{Data: room[:0], reserved: room}
}

// Release gives back what Reserve took. No value of the arena may be used any more.
func (a *Arena) Release() {
	if a.reserved != nil {
		_ = syscall.Munmap(a.reserved)
	}
	*a = Arena{}
}
