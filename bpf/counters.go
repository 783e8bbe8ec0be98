package bpf

// Counters are totals since Open, over all CPUs and watched threads.
type Counters struct {
	Taken          uint64 // samples of watched threads
	LostRing       uint64 // of these, lost because the ring was full
	NoRegisters    uint64 // of these, without user registers
	NoStack        uint64 // of these, with a stack that could not be read
	NoProgressWord uint64 // of these, with a progress word that could not be read
}

// Counters reads the totals from the kernel.
func (s *Sampler) Counters() (c Counters, err error) {
	for which, to := range map[samplerCounter]*uint64{
		samplerCounterCOUNTER_TAKEN:     &c.Taken,
		samplerCounterCOUNTER_LOST_RING: &c.LostRing,
		samplerCounterCOUNTER_NO_REGS:   &c.NoRegisters,
		samplerCounterCOUNTER_NO_STACK:  &c.NoStack,
		samplerCounterCOUNTER_NO_WORD:   &c.NoProgressWord,
	} {
		if *to, err = s.total(which); err != nil {
			return Counters{}, err
		}
	}
	return c, nil
}

// LostRing reads one of them, Counters.LostRing.
func (s *Sampler) LostRing() (uint64, error) { return s.total(samplerCounterCOUNTER_LOST_RING) }

func (s *Sampler) total(which samplerCounter) (sum uint64, err error) {
	var perCPU []uint64
	if err := s.objects.Counters.Lookup(uint32(which), &perCPU); err != nil {
		return 0, err
	}
	for _, n := range perCPU {
		sum += n
	}
	return sum, nil
}
