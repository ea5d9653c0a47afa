# Trains a model that recognizes digits, and stores it in the volume of the pod.
import joblib
from sklearn import datasets, svm

pixels, digits = datasets.load_digits(return_X_y=True)
joblib.dump(svm.SVC(gamma=0.001, C=100).fit(pixels, digits), "/data/digits.joblib")
