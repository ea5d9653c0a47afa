package registrytest

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/apis/server"
)

// Placed returns pod settings with two replicas and all fields for scheduling, image pulls and volumes.
func Placed() server.Pods {
	return server.Pods{
		Replicas:         new(int32(2)),
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "mirror"}},
		NodeSelector:     map[string]string{"disk": "ssd"},
		Tolerations:      []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}},
		Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
			Weight:     1,
			Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpExists}}},
		}}}},
		CommonPods: server.CommonPods{
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "kubernetes.io/hostname", WhenUnsatisfiable: corev1.ScheduleAnyway}},
			PriorityClassName:         "important",
			Volumes: []server.Volume{
				{Name: "trust", ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "authorities"}}},
				{Name: "login", Secret: &corev1.SecretVolumeSource{SecretName: "client"}},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "trust", MountPath: "/etc/trust", ReadOnly: true}, {Name: "login", MountPath: "/etc/login"}},
		},
	}
}
