// What the page says of a model's data: examples to try, what it was trained on, and a warning beyond that.
export const EXAMPLE_WORDS = {
  tryThese: ["Try one of these", "예문으로 시작해 보세요"],
  trainedOnPhrasebook: [
    "Trained on {0} pairs of the built-in phrasebook: greetings, introductions, numbers and times, restaurants, shops, directions, travel, phone, weather.",
    "내장 회화집의 문장 {0}쌍으로 학습했습니다: 인사, 소개, 숫자와 시간, 식당, 쇼핑, 길 찾기, 여행, 전화, 날씨.",
  ],
  trainedOnPairs: ["Trained on {0} pairs of texts.", "텍스트 {0}쌍으로 학습했습니다."],
  mostUnsure: ["The model is unsure of most words here.", "모델이 이 글의 단어 대부분을 확신하지 못합니다."],
  otherKind: ["Other kinds of text are not translated well.", "이와 다른 종류의 글은 제대로 번역되지 않습니다."],
};
