package resources

import (
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// environment is a list of variables, each of which stands there once.
type environment []*corev1ac.EnvVarApplyConfiguration

// set gives a variable a value, in its place or at the end.
func (e *environment) set(name, value string) {
	v := corev1ac.EnvVar().WithName(name)
	if value != "" { // the API server stores no empty value
		v.WithValue(value)
	}
	e.put(v)
}

// put replaces the variable of that name as a whole, or appends it.
func (e *environment) put(v *corev1ac.EnvVarApplyConfiguration) {
	for i, old := range *e {
		if *old.Name == *v.Name {
			(*e)[i] = v
			return
		}
	}
	*e = append(*e, v)
}

// field gives a variable the value of a field of the pod.
func (e *environment) field(name, path string) {
	e.put(corev1ac.EnvVar().WithName(name).WithValueFrom(corev1ac.EnvVarSource().
		WithFieldRef(corev1ac.ObjectFieldSelector().WithFieldPath(path))))
}

// distinctEnv leaves one of several variables of one name: the last, which is the one that counts. Lists whose elements have
// names know no doubles.
func (p *pod) distinctEnv(container string, env []corev1ac.EnvVarApplyConfiguration) []corev1ac.EnvVarApplyConfiguration {
	last := map[string]int{}
	for i, v := range env {
		last[*named(&v).Name] = i
	}
	if len(last) == len(env) {
		return env
	}
	var kept []corev1ac.EnvVarApplyConfiguration
	for i, v := range env {
		if last[*v.Name] == i {
			kept = append(kept, v)
			continue
		}
		p.notice("spec.containers[%s].env: %s stands there more than once, the last one counts: remove the others", container, *v.Name)
	}
	return kept
}

// named has a name, if only an empty one.
func named(v *corev1ac.EnvVarApplyConfiguration) *corev1ac.EnvVarApplyConfiguration {
	if v.Name == nil {
		v.WithName("")
	}
	return v
}

// distinctPorts leaves one of several ports of one number: the first.
func (p *pod) distinctPorts(container string, ports []corev1ac.ContainerPortApplyConfiguration) []corev1ac.ContainerPortApplyConfiguration {
	type key struct {
		number   int32
		protocol corev1.Protocol
	}
	seen := map[key]bool{}
	var kept []corev1ac.ContainerPortApplyConfiguration
	for _, port := range ports {
		k := key{protocol: corev1.ProtocolTCP}
		if port.ContainerPort != nil {
			k.number = *port.ContainerPort
		}
		if port.Protocol != nil {
			k.protocol = *port.Protocol
		}
		if seen[k] {
			p.notice("spec.containers[%s].ports: %d stands there more than once, the first one counts: remove the others", container, k.number)
			continue
		}
		seen[k] = true
		kept = append(kept, port)
	}
	return kept
}
