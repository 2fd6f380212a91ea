"""Languages: told by script and function words, with stems, function words and accents of their own."""

from __future__ import annotations

import pytest

from matchloom.lexical import BM25
from matchloom.lexical.statistics import is_stop_word
from matchloom.search.collection import Collection
from matchloom.text import tokenize
from matchloom.text.languages import FUNCTION_WORDS, language_of
from matchloom.text.tokenize import LONGEST_KEPT, Tokenizer, stem, stems
from matchloom.text.vocab import Vocab
from matchloom.types import Pair
from tests.refusing import refused

SAMPLES = {
    "english": "How can I change my password? Where is the invoice?",
    "german": "Wie kann ich mein Passwort ändern? Wo ist die Rechnung?",
    "french": "Comment puis-je résilier mon assurance ? Où est la facture ?",
    "spanish": "¿Cómo puedo cambiar mi contraseña? ¿Dónde está la factura?",
    "italian": "Come posso cambiare la mia password? Dove è la fattura?",
    "portuguese": "Como posso alterar a minha senha? Onde está a fatura?",
    "dutch": "Hoe kan ik mijn wachtwoord wijzigen? Waar is de factuur?",
    "swedish": "Hur ändrar jag mitt lösenord? Var är fakturan, och när får jag den?",
    "danish": "Hvordan ændrer jeg min adgangskode? Hvad er det, og hvornår får jeg den?",
    "norwegian": "Hvordan endrer jeg passordet mitt? Hva er det, og når får jeg den?",
    "polish": "Jak mogę zmienić hasło? Gdzie jest faktura i czy to jest możliwe?",
    "czech": "Jak mohu změnit heslo? Kde je faktura a proč to není možné?",
    "turkish": "Şifremi nasıl değiştirebilirim? Bu fatura ne için ve nerede?",
    "russian": "Как мне изменить пароль? Где мой счёт?",
    "ukrainian": "Як мені змінити пароль? Де мій рахунок?",
    "greek": "Πώς μπορώ να αλλάξω τον κωδικό μου;",
    "arabic": "كيف يمكنني تغيير كلمة المرور؟",
    "persian": "چگونه می‌توانم رمز عبور را تغییر دهم؟",
    "hebrew": "איך אני משנה את הסיסמה?",
    "hindi": "मैं अपना पासवर्ड कैसे बदल सकता हूँ?",
    "vietnamese": "Làm thế nào để tôi đổi mật khẩu? Hóa đơn của tôi ở đâu?",
    "bengali": "আমি কীভাবে আমার পাসওয়ার্ড পরিবর্তন করব?",
    "thai": "ฉันจะเปลี่ยนรหัสผ่านได้อย่างไร",
    "korean": "비밀번호를 어떻게 변경하나요?",
    "japanese": "パスワードを変更するにはどうすればいいですか？",
    "chinese": "如何更改密码？",
}


@pytest.mark.parametrize("language", SAMPLES)
def test_a_language_is_told(language: str) -> None:
    assert language_of([SAMPLES[language]]) == language


@pytest.mark.parametrize(
    "text", ["", "iPhone 13 Pro Max", "die cast car", "a la carte menu", "w1 w2 w3", "a i o e u", "🙂"]
)
def test_nothing_but_english_is_told_from_little(text: str) -> None:
    assert language_of([text]) == "english"


def test_stems_follow_the_language() -> None:
    assert stems(["häuser", "haus"], "german") == ["haus", "haus"]
    assert stem("größen", "german") == stem("grösse", "german")
    assert stem("l'assurance", "french") == stem("assurances", "french")
    assert stem("contraseñas", "spanish") == stem("contrasena", "spanish")
    assert stem("비밀번호를", "korean") == stem("비밀번호는", "korean") == "비밀번호"
    assert stem("パスワード", "japanese") == "パスワード"
    assert stem("looms") == stem("looms", "english") == "loom"


def test_function_words_follow_the_language() -> None:
    assert is_stop_word("welche", "german")
    assert not is_stop_word("welche")
    assert is_stop_word("the")
    assert not is_stop_word("the", "german")
    assert is_stop_word("?!", "german")


@pytest.mark.parametrize("language", FUNCTION_WORDS)
def test_every_language_has_stems(language: str) -> None:
    words = Tokenizer.named(language)(SAMPLES.get(language, "word 語 слово"))
    assert words
    assert all(stems(words, language))


def test_long_words_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(tokenize, "stem_in", lambda word, language: asked.append(word) or word)
    short, long = "unheard" * 3, "x" * (LONGEST_KEPT + 1)
    for word in (short, long, short, long):
        stem(word, "basque")
    assert asked == [short, long, long]


@pytest.mark.parametrize(
    ("language", "known", "asked"),
    [
        ("japanese", ["パスワードを忘れました", "領収書を発行できますか"], ["パスワード再設定", "領収書がほしい"]),
        ("korean", ["비밀번호를 잊어버렸어요", "영수증을 받을 수 있나요"], ["새비밀번호", "영수증"]),
        ("thai", ["ลืมรหัสผ่านต้องทำอย่างไร", "ขอใบเสร็จได้ไหม"], ["รหัสผ่าน", "อยากได้ใบเสร็จ"]),
        ("arabic", ["نسيت كلمة المرور", "أين أجد الفاتورة"], ["كلمة مرور", "فاتوره"]),
        ("hebrew", ["שכחתי את הסיסמה", "איפה החשבונית שלי"], ["סיסמה", "חשבוניות"]),
        (
            "german",
            ["Was kostet die Haftpflichtversicherung?", "Wie groß ist es?"],
            ["Haftpflicht", "GROESSE grösse"],
        ),
        ("french", ["Comment résilier ?", "Où est ma pièce jointe ?"], ["resiliation", "PIECES JOINTES"]),
    ],
)
def test_parts_of_words_find_entries_in_every_script(language: str, known: list[str], asked: list[str]) -> None:
    tokenizer = Tokenizer.for_texts(known * 2)
    assert tokenizer.language == language
    pairs = [Pair(question, f"{n}.", text_id=str(n)) for n, question in enumerate(known)]
    made = Collection.fit(pairs, tokenizer=tokenizer)
    assert [made.search(question)[0].id for question in asked] == ["0", "1"]


def test_japanese_is_cut_where_the_script_changes() -> None:
    words = Tokenizer.named("japanese")("パスワードを変更するには、3.5円 OK 人々？")
    assert words == ["パスワード", "を", "変更", "するには", "3.5", "円", "ok", "人々"]


def test_a_tokenizer_is_kept_with_its_language() -> None:
    tokenizer = Tokenizer.named("german", max_words=7)
    assert Tokenizer.from_dict(tokenizer._asdict()) == tokenizer
    assert Tokenizer.from_dict({"kind": "english", "lower": True, "max_words": None}) == Tokenizer()
    for language in ("klingon", 3, None):
        with refused("unknown_name", "language"):
            Tokenizer.from_dict({**tokenizer._asdict(), "language": language})
    with refused("unknown_name", "'klingon'"):
        Tokenizer.named("klingon")


def test_bm25_and_vocabulary_count_stems_of_the_language() -> None:
    german = Tokenizer.named("german")
    scorer = BM25.fit(["Die Häuser sind alt", "Wo ist der Hund"], tokenizer=german, stem=True, stop_words=True)
    assert set(scorer.collection.frequencies) == {"haus", "alt", "hund"}
    assert scorer.score("das Haus", "Die Häuser sind alt") > 0
    vocab = Vocab.build([["häuser"], ["haus"], ["hund"]])
    assert vocab.stem_idf("haus", "german") < vocab.stem_idf("haus")


def test_a_collection_has_the_language_of_its_tokenizer_and_explains_all_words() -> None:
    pairs = [
        Pair("Wie alt werden Häuser?", "Hundert Jahre.", text_id="a"),
        Pair("Wer seid ihr?", "Ein Verein.", text_id="b"),
        Pair("Wo schläft der Hund?", "Im Korb.", text_id="c"),
    ]
    made = Collection.fit(pairs, tokenizer=Tokenizer.named("german"))
    assert made.search("Ist mein Haus alt?")[0].id == "a"
    assert made.search("Wer seid ihr?")[0].id == "b"  # function words alone still find it
    explained = made.search("Ist mein Haus alt?", explain=True)[0].explanation
    assert explained is not None
    assert list(explained.query) == ["ist", "mein", "haus", "alt"]
    made.add([Pair("Was kostet das Haus?", "Nichts.", text_id="d")])
    assert made.search("Was kosten die Häuser?")[0].id == "d"
