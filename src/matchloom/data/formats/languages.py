"""What the columns of questions and answers are called in other languages than English."""

from __future__ import annotations

#: Language -> names of a column of questions, names of a column of answers.
QUESTION_ANSWER = {
    "arabic": (("سؤال", "السؤال"), ("جواب", "الجواب", "إجابة", "الإجابة")),
    "chinese": (("问题", "問題", "提问", "提問", "问", "問"), ("答案", "回答", "答复", "答覆", "答")),
    "czech": (("otázka",), ("odpověď",)),
    "danish": (("spørgsmål",), ("svar",)),
    "dutch": (("vraag",), ("antwoord",)),
    "finnish": (("kysymys",), ("vastaus",)),
    "french": (("question", "questions"), ("réponse", "réponses")),
    "german": (("frage", "fragen", "kundenfrage", "anfrage"), ("antwort", "antworten")),
    "greek": (("ερώτηση",), ("απάντηση",)),
    "hebrew": (("שאלה",), ("תשובה",)),
    "hungarian": (("kérdés",), ("válasz",)),
    "indonesian": (("pertanyaan",), ("jawaban",)),
    "italian": (("domanda", "domande"), ("risposta", "risposte")),
    "japanese": (("質問", "質問内容", "ご質問", "問い"), ("回答", "回答内容", "ご回答", "答え")),
    "korean": (("질문",), ("답변", "대답")),
    "norwegian": (("spørsmål",), ("svar",)),
    "polish": (("pytanie",), ("odpowiedź",)),
    "portuguese": (("pergunta", "perguntas", "questão", "dúvida"), ("resposta", "respostas")),
    "romanian": (("întrebare",), ("răspuns",)),
    "russian": (("вопрос", "вопросы"), ("ответ", "ответы")),
    "spanish": (("pregunta", "preguntas"), ("respuesta", "respuestas")),
    "swedish": (("fråga",), ("svar",)),
    "turkish": (("soru",), ("cevap", "yanıt")),
    "ukrainian": (("питання", "запитання"), ("відповідь",)),
    "vietnamese": (("câu hỏi",), ("câu trả lời", "trả lời")),
}
QUESTIONS = tuple(dict.fromkeys(name for names, _ in QUESTION_ANSWER.values() for name in names if name != "question"))
ANSWERS = tuple(dict.fromkeys(name for _, names in QUESTION_ANSWER.values() for name in names))
