package podset

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// defaultGraceSeconds is what Kubernetes gives a pod that names no grace period.
const defaultGraceSeconds int64 = corev1.DefaultTerminationGracePeriodSeconds

// reducedMeta has the labels and annotations of a pod template; values that are no strings are left out.
func reducedMeta(template map[string]any) metav1.ObjectMeta {
	return metav1.ObjectMeta{Labels: texts(template, "labels"), Annotations: texts(template, "annotations")}
}

func texts(template map[string]any, field string) map[string]string {
	value, _, err := unstructured.NestedFieldNoCopy(template, "metadata", field)
	entries, ok := value.(map[string]any)
	if err != nil || !ok {
		return nil
	}
	result := make(map[string]string, len(entries))
	for key, value := range entries {
		if text, ok := value.(string); ok {
			result[key] = text
		}
	}
	return result
}

// reduced copies what quota and placement depend on. The priority is left to its class: the number that the API server
// finds for it would differ from what a template says. A given grace period is kept (D22).
func reduced(full *corev1.PodSpec) corev1.PodSpec {
	spec := corev1.PodSpec{
		InitContainers:                reducedContainers(full.InitContainers),
		Containers:                    reducedContainers(full.Containers),
		RestartPolicy:                 orElse(full.RestartPolicy, corev1.RestartPolicyAlways),
		DNSPolicy:                     orElse(full.DNSPolicy, corev1.DNSClusterFirst),
		NodeSelector:                  full.NodeSelector,
		NodeName:                      full.NodeName,
		SecurityContext:               full.SecurityContext,
		Affinity:                      full.Affinity,
		SchedulerName:                 orElse(full.SchedulerName, corev1.DefaultSchedulerName),
		Tolerations:                   full.Tolerations,
		PriorityClassName:             full.PriorityClassName,
		PreemptionPolicy:              full.PreemptionPolicy,
		Overhead:                      full.Overhead,
		TopologySpreadConstraints:     full.TopologySpreadConstraints,
		TerminationGracePeriodSeconds: full.TerminationGracePeriodSeconds,
	}
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	if spec.PreemptionPolicy == nil {
		spec.PreemptionPolicy = new(corev1.PreemptLowerPriority)
	}
	if spec.TerminationGracePeriodSeconds == nil {
		spec.TerminationGracePeriodSeconds = new(defaultGraceSeconds)
	}
	return spec
}

// reducedContainers leaves out environment, mounts, ports and probes.
func reducedContainers(full []corev1.Container) []corev1.Container {
	var result []corev1.Container
	for i := range full {
		c := &full[i]
		result = append(result, corev1.Container{
			Name:    c.Name,
			Image:   c.Image,
			Command: c.Command,
			Args:    c.Args,
			Resources: corev1.ResourceRequirements{
				Requests: inMilli(c.Resources.Requests),
				Limits:   inMilli(c.Resources.Limits),
			},
			TerminationMessagePath:   orElse(c.TerminationMessagePath, corev1.TerminationMessagePathDefault),
			TerminationMessagePolicy: orElse(c.TerminationMessagePolicy, corev1.TerminationMessageReadFile),
			ImagePullPolicy:          orElse(c.ImagePullPolicy, pullPolicy(c.Image)),
			SecurityContext:          c.SecurityContext,
		})
	}
	return result
}

// inMilli rounds every quantity up to a thousandth, the finest that Kubernetes counts in.
func inMilli(list corev1.ResourceList) corev1.ResourceList {
	for name, quantity := range list {
		quantity.RoundUp(resource.Milli)
		list[name] = quantity
	}
	return list
}

// pullPolicy is what Kubernetes takes for an image: with the tag latest, or with neither tag nor digest, it is pulled
// every time.
func pullPolicy(image string) corev1.PullPolicy {
	name, _, digested := strings.Cut(image, "@")
	_, tag, _ := strings.Cut(name[strings.LastIndexByte(name, '/')+1:], ":")
	if tag == "latest" || tag == "" && !digested {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

func orElse[T ~string](value, otherwise T) T {
	if value == "" {
		return otherwise
	}
	return value
}
