package server

// Switch is Enabled or Disabled.
//
// +kubebuilder:validation:Enum=Enabled;Disabled
type Switch string

const (
	// Enabled turns a feature on.
	Enabled Switch = "Enabled"
	// Disabled turns a feature off.
	Disabled Switch = "Disabled"
)
