package main

import (
	"bufio"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// managerKey is the key of the manager's own image. All other keys are environment variables.
const managerKey = "odh-platform-operator-image"

// withVersionTag adds the version as tag to the manager's image if it has neither tag nor digest.
func withVersionTag(parameters []parameter, version string) []parameter {
	out := slices.Clone(parameters)
	for i, p := range out {
		if p.key == managerKey && strings.LastIndex(p.value, ":") <= strings.LastIndex(p.value, "/") {
			out[i].value += ":v" + version
		}
	}
	return out
}

// parameter is one line of a params.env.
type parameter struct{ key, value string }

// readParameters parses lines of the form key=value. It skips empty lines and comments.
func readParameters(text string) ([]parameter, error) {
	var out []parameter
	scanner := bufio.NewScanner(strings.NewReader(text))
	for scanner.Scan() {
		line := strings.TrimSpace(scanner.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, found := strings.Cut(line, "=")
		if !found || key == "" || value == "" {
			return nil, fmt.Errorf("%q is not a line of the form key=image", line)
		}
		if slices.ContainsFunc(out, func(p parameter) bool { return p.key == key }) {
			return nil, fmt.Errorf("%s is set twice", key)
		}
		out = append(out, parameter{key, value})
	}
	return out, scanner.Err()
}

// setImages sets the images in the Deployment and returns them as related images.
func setImages(deployment *appsv1.Deployment, parameters []parameter) ([]v1alpha1.RelatedImage, error) {
	index := slices.IndexFunc(deployment.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return c.Name == "manager" })
	if index < 0 {
		return nil, fmt.Errorf("the Deployment %s has no container named manager", deployment.Name)
	}
	container := &deployment.Spec.Template.Spec.Containers[index]
	// Drop empty variables and all images of the overlay. Only the images of parameters are mirrored.
	container.Env = slices.DeleteFunc(container.Env, func(e corev1.EnvVar) bool {
		return e.ValueFrom == nil && (e.Value == "" || strings.Contains(e.Name, "IMAGE"))
	})
	var images []v1alpha1.RelatedImage
	for _, p := range parameters {
		if p.key == managerKey {
			container.Image = p.value
			images = append(images, v1alpha1.RelatedImage{Name: "manager", Image: p.value})
			continue
		}
		container.Env = append(container.Env, corev1.EnvVar{Name: p.key, Value: p.value})
		images = append(images, v1alpha1.RelatedImage{Name: imageName(p.key), Image: p.value})
	}
	if !slices.ContainsFunc(images, func(i v1alpha1.RelatedImage) bool { return i.Image == container.Image }) {
		return nil, fmt.Errorf("%s is missing: it names the image of the manager", managerKey)
	}
	return images, nil
}

// imageName returns the name of a related image: RELATED_IMAGE_ODH_MLFLOW_IMAGE becomes odh-mlflow.
func imageName(variable string) string {
	name := strings.TrimSuffix(strings.TrimPrefix(variable, "RELATED_IMAGE_"), "_IMAGE")
	return strings.ReplaceAll(strings.ToLower(name), "_", "-")
}

// arePinned reports whether all images have a digest; the content of a tag may differ in a mirror.
func arePinned(images []v1alpha1.RelatedImage) bool {
	return !slices.ContainsFunc(images, func(i v1alpha1.RelatedImage) bool { return !strings.Contains(i.Image, "@sha256:") })
}
