"""What the product is not, said in the README, in ``info`` and in every answer. Source: coding.md."""

NOTICE = (
    "Suggestions for documentation; a person decides. A hit does not show that a diagnosis is present, "
    "treated or billable in this case (Deutsche Kodierrichtlinien; § 295 Abs. 4 SGB V). Not for diagnosis or "
    "therapy, not a medical device, not certified billing software."
)
SYSTEM = "http://fhir.de/CodeSystem/bfarm/icd-10-gm"
