package settings

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// contradictions are mistakes that only show when several settings meet.
func (s Settings) contradictions() []error {
	errs := s.exceeded()
	for _, one := range s.PayloadProcessors {
		if one == "" || !hasNoBlank(one) { // in the words of the original: blanks part one processor from the next
			errs = append(errs, fmt.Errorf("Error parsing payload processor '%s': endpoint must not contain spaces.", short(one))) //nolint:revive,staticcheck // the original's words
		}
	}
	for i, one := range s.ImagePullSecrets {
		if one.Name == "" {
			errs = append(errs, fmt.Errorf("imagePullSecrets[%d].name is missing: name a Secret", i))
		}
	}
	for i, one := range s.InternalModelMeshEnvVars {
		if one.Name == "" {
			errs = append(errs, fmt.Errorf("internalModelMeshEnvVars[%d].name is missing: name a variable", i))
		}
	}
	return append(errs, s.sharedPorts()...)
}

// exceeded finds requests of resources above their limits.
func (s Settings) exceeded() (errs []error) {
	for _, c := range []struct {
		name      string
		resources corev1.ResourceRequirements
	}{
		{"modelMeshResources", s.ModelMeshResources}, {"restProxy.resources", s.RESTProxy.Resources},
		{"storageHelperResources", s.StorageHelper.Resources}, {"authProxy.resources", s.AuthProxy.Resources},
	} {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := c.resources.Requests[name], c.resources.Limits[name]
			if request.Cmp(limit) > 0 {
				errs = append(errs, invalid(c.name, fmt.Errorf("requests.%s %s is more than limits.%s %s: lower the one or raise the other",
					name, request.String(), name, limit.String())))
			}
		}
	}
	return errs
}

// sharedPorts finds two listeners of one pod on one port. Those without a setting are in runtime pods as well.
func (s Settings) sharedPorts() []error {
	used := map[int32]string{8080: "the traffic between pods", 8089: "the probes", 8090: "the end of the pod"}
	var errs []error
	for _, listener := range []struct {
		name string
		port int32
		on   bool
	}{
		{"inferenceServicePort", s.ServicePort, true}, {"restProxy.port", s.RESTProxy.Port, s.RESTProxy.Enabled},
		{"metrics.port", s.Metrics.Port, s.Metrics.Enabled},
	} {
		if !listener.on {
			continue
		}
		if other, taken := used[listener.port]; taken {
			errs = append(errs, fmt.Errorf("%s %d is the port of %s too: give it one of its own", listener.name, listener.port, other))
		}
		used[listener.port] = listener.name
	}
	return errs
}
