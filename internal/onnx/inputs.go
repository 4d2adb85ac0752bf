package onnx

import (
	"fmt"

	"localembed/models"
)

// feed is the content of an input.
func (s *Session) feed(role models.Role, ids []int64, items, length int, lengths []int32) []int64 {
	n := items * length
	switch role {
	case models.IDs:
		return ids
	case models.Types:
		s.zeros = grown(s.zeros, n, 0)
		return s.zeros[:n]
	case models.Positions:
		s.positions = grown(s.positions, n, 0)
		for i := range n {
			s.positions[i] = int64(i % length)
		}
		return s.positions[:n]
	case models.Mask:
		if lengths == nil {
			s.ones = grown(s.ones, n, 1)
			return s.ones[:n]
		}
		s.mask = grown(s.mask, n, 0)
		for i, real := range lengths {
			row := s.mask[i*length : (i+1)*length]
			for j := range row {
				row[j] = 0
				if j < int(real) {
					row[j] = 1
				}
			}
		}
		return s.mask[:n]
	}
	panic(fmt.Sprintf("onnx: unknown role %d", role))
}

// narrowed is data as int32, in the buffer of the input i.
func (s *Session) narrowed(i int, data []int64) []int32 {
	for len(s.narrow) <= i {
		s.narrow = append(s.narrow, nil)
	}
	if cap(s.narrow[i]) < len(data) {
		s.narrow[i] = make([]int32, len(data))
	}
	b := s.narrow[i][:len(data)]
	for j, v := range data {
		b[j] = int32(v)
	}
	return b
}

// grown is b with at least n elements, the new ones with the value v.
func grown(b []int64, n int, v int64) []int64 {
	for len(b) < n {
		b = append(b, v)
	}
	return b
}
