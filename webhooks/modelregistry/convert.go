package modelregistry

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/odh-platform/odh-platform-operator/webhooks/modelregistry/conversion"
)

// maxReview bounds the body of a review, in bytes. A list is converted as one.
const maxReview = 64 << 20

// converter answers conversion reviews.
type converter struct{}

// ServeHTTP implements http.Handler. What is no review is answered with status 400; an object that cannot be converted
// fails its review.
func (converter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	review := apiextensionsv1.ConversionReview{}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReview))
	if err == nil {
		err = kjson.Unmarshal(body, &review)
	}
	if err != nil || review.Request == nil {
		http.Error(w, fmt.Sprintf("no conversion review: %v", err), http.StatusBadRequest)
		return
	}
	review.Response = answerReview(review.Request)
	review.Request = nil
	answer, err := json.Marshal(&review)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // the client is gone
}

func answerReview(request *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	response := &apiextensionsv1.ConversionResponse{UID: request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for i := range request.Objects {
		converted, err := convertRaw(request.Objects[i].Raw, request.DesiredAPIVersion)
		if err != nil {
			return &apiextensionsv1.ConversionResponse{UID: request.UID, Result: metav1.Status{
				Status: metav1.StatusFailure, Message: fmt.Sprintf("objects[%d]: %v", i, err),
			}}
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: converted})
	}
	return response
}

func convertRaw(raw []byte, wanted string) ([]byte, error) {
	var object map[string]any
	if err := kjson.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("decoding it: %w", err)
	}
	converted, err := conversion.Convert(object, wanted)
	if err != nil {
		return nil, err
	}
	return json.Marshal(converted)
}
