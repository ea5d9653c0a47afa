package images

// Monitoring builds the images of the Prometheus operator and of Prometheus from their binaries, by name.
func Monitoring(s Store, programs map[string]string) error {
	for name, image := range map[string]string{
		"operator":                   "quay.io/prometheus-operator/prometheus-operator:v0.93.1",
		"prometheus-config-reloader": "quay.io/prometheus-operator/prometheus-config-reloader:v0.93.1",
		"prometheus":                 "quay.io/prometheus/prometheus:v3.13.1",
	} {
		if err := Program(s, programs[name], "/bin/"+name, image); err != nil {
			return err
		}
	}
	return nil
}
